import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Map;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.json.JsonConverter;

/**
 * Reads payloads with Kafka's JsonConverter and writes them again.
 *
 * A line of input is "enable decimal hex": the values of schemas.enable and decimal.format, and the
 * payload. Its line of output is the hex of what was written, "null" for no payload, or "error" and
 * why.
 */
public class ConvertJson {
    private static final HexFormat HEX = HexFormat.of();

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        StringBuilder answers = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ", 3);
            answers.append(answer(words[0], words[1], words[2])).append('\n');
        }
        System.out.write(answers.toString().getBytes(StandardCharsets.UTF_8));
        System.out.flush();
    }

    private static String answer(String enable, String decimal, String hex) {
        try (JsonConverter converter = new JsonConverter()) {
            converter.configure(Map.of("schemas.enable", enable, "decimal.format", decimal), false);
            SchemaAndValue read = converter.toConnectData("topic", HEX.parseHex(hex));
            byte[] written = converter.fromConnectData("topic", read.schema(), read.value());
            return written == null ? "null" : HEX.formatHex(written);
        } catch (Exception error) {
            return ("error " + error.getClass().getName() + " " + error.getMessage())
                .replace('\n', ' ');
        }
    }
}
