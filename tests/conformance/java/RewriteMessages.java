import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/**
 * Reads messages with Kafka's own classes and writes them again.
 *
 * A line of input is "name version hex", or "name version new" for a message nobody has set a
 * field of. Its line of output is the hex of what was written, "unknown" where this Kafka has no
 * such message or version, or "error" and why.
 */
public class RewriteMessages {
    private static final HexFormat HEX = HexFormat.of();

    private static final String[] PACKAGES = {
        "org.apache.kafka.common.message.",
        "org.apache.kafka.common.metadata.",
        "org.apache.kafka.raft.generated.",
        "org.apache.kafka.coordinator.group.generated.",
        "org.apache.kafka.coordinator.share.generated.",
        "org.apache.kafka.coordinator.transaction.generated.",
        "org.apache.kafka.server.log.remote.metadata.storage.generated.",
    };

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        StringBuilder answers = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ", 3);
            answers.append(answer(words[0], Short.parseShort(words[1]), words[2])).append('\n');
        }
        System.out.print(answers);
    }

    private static String answer(String name, short version, String hex) {
        try {
            Message message = empty(name);
            if (message == null
                    || version < message.lowestSupportedVersion()
                    || version > message.highestSupportedVersion()) {
                return "unknown";
            }
            if (!hex.equals("new")) {
                ByteBuffer encoded = ByteBuffer.wrap(HEX.parseHex(hex));
                message.read(new ByteBufferAccessor(encoded), version);
                if (encoded.hasRemaining()) {
                    return "error " + encoded.remaining() + " bytes were not read";
                }
            }
            return HEX.formatHex(written(message, version));
        } catch (Exception error) {
            return "error " + error.toString().replace('\n', ' ');
        }
    }

    private static byte[] written(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer out = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(out), cache, version);
        return out.array();
    }

    private static Message empty(String name) throws ReflectiveOperationException {
        for (String location : PACKAGES) {
            for (String suffix : new String[] {"Data", ""}) {
                try {
                    Class<?> found = Class.forName(location + name + suffix);
                    if (Message.class.isAssignableFrom(found)) {
                        return (Message) found.getConstructor().newInstance();
                    }
                } catch (ClassNotFoundException notHere) {
                    continue;
                }
            }
        }
        return null;
    }
}
