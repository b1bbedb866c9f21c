import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.storage.SimpleHeaderConverter;

/**
 * Reads values of headers with Kafka's SimpleHeaderConverter and writes them again.
 *
 * A line of input is a value in hex. Its line of output is the type and the hex of what was written.
 */
public class ParseHeaders {
    private static final HexFormat HEX = HexFormat.of();

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        StringBuilder answers = new StringBuilder();
        try (SimpleHeaderConverter converter = new SimpleHeaderConverter()) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                SchemaAndValue read = converter.toConnectHeader("", "", HEX.parseHex(line));
                if (read == null) {
                    answers.append("none null\n");
                    continue;
                }
                byte[] written = converter.fromConnectHeader("", "", read.schema(), read.value());
                answers.append(name(read.schema())).append(' ')
                    .append(written == null ? "null" : HEX.formatHex(written)).append('\n');
            }
        }
        System.out.write(answers.toString().getBytes(StandardCharsets.UTF_8));
        System.out.flush();
    }

    private static String name(Schema schema) {
        if (schema == null) {
            return "null";
        }
        return switch (schema.type()) {
            case ARRAY -> "array<" + name(schema.valueSchema()) + ">";
            case MAP -> "map<" + name(schema.keySchema()) + "," + name(schema.valueSchema()) + ">";
            default -> schema.name() == null
                ? schema.type().getName() : schema.name().replaceAll(".*\\.", "");
        };
    }
}
