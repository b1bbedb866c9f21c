import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.storage.SimpleHeaderConverter;
import org.apache.kafka.connect.transforms.Transformation;
import org.apache.kafka.connect.transforms.predicates.Predicate;

/**
 * Applies Kafka's own transforms and predicates to records.
 *
 * A line of input is {"class", "settings", "defaults", "source", "records"}. A record has a topic,
 * partition, offset, timestamp, the envelopes of its key and value as text, and headers. The line of
 * output is {"error"} if the plugin cannot be configured, or {"results"}: for each record null if it
 * was dropped, {"error"}, {"is"} for a predicate, or the record.
 */
public class ApplyTransforms {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final SimpleHeaderConverter HEADERS = new SimpleHeaderConverter();

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        StringBuilder answers = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            answers.append(JSON.writeValueAsString(applied(JSON.readTree(line)))).append('\n');
        }
        System.out.write(answers.toString().getBytes(StandardCharsets.UTF_8));
        System.out.flush();
    }

    private static ObjectNode applied(JsonNode request) throws Exception {
        ObjectNode answer = JSON.createObjectNode();
        Map<String, String> settings = new HashMap<>();
        request.get("settings").fields().forEachRemaining(
            each -> settings.put(each.getKey(), each.getValue().textValue()));
        Configurable plugin = (Configurable) Class.forName(request.get("class").asText())
            .getConstructor().newInstance();
        try {
            plugin.configure(settings);
        } catch (Exception error) {
            answer.put("error", described(error));
            return answer;
        }
        JsonConverter converter = new JsonConverter();
        converter.configure(
            Map.of("replace.null.with.default", request.get("defaults").asText()), false);
        ArrayNode results = answer.putArray("results");
        for (JsonNode each : request.get("records")) {
            boolean isSource = request.get("source").asBoolean();
            results.add(result(plugin, isSource ? sourceRecord(converter, each)
                : sinkRecord(converter, each), converter));
        }
        return answer;
    }

    private static ConnectRecord<?> sinkRecord(JsonConverter converter, JsonNode record) {
        SchemaAndValue key = read(converter, record.get("key"));
        SchemaAndValue value = read(converter, record.get("value"));
        JsonNode timestamp = record.get("timestamp");
        SinkRecord made = new SinkRecord(
            record.get("topic").asText(), record.get("partition").asInt(), key.schema(),
            key.value(), value.schema(), value.value(), record.get("offset").asLong(),
            timestamp.isNull() ? null : timestamp.asLong(), TimestampType.CREATE_TIME);
        return withHeaders(made, record);
    }

    private static ConnectRecord<?> sourceRecord(JsonConverter converter, JsonNode record) {
        SchemaAndValue key = read(converter, record.get("key"));
        SchemaAndValue value = read(converter, record.get("value"));
        JsonNode timestamp = record.get("timestamp");
        SourceRecord made = new SourceRecord(
            Map.of(), Map.of(), record.get("topic").asText(), null, key.schema(), key.value(),
            value.schema(), value.value(), timestamp.isNull() ? null : timestamp.asLong());
        return withHeaders(made, record);
    }

    private static ConnectRecord<?> withHeaders(ConnectRecord<?> made, JsonNode record) {
        for (JsonNode header : record.get("headers")) {
            made.headers().addString(header.get(0).asText(), header.get(1).asText());
        }
        return made;
    }

    private static SchemaAndValue read(JsonConverter converter, JsonNode text) {
        return converter.toConnectData("topic",
            text.isNull() ? null : text.asText().getBytes(StandardCharsets.UTF_8));
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static JsonNode result(
            Configurable plugin, ConnectRecord record, JsonConverter converter) {
        ObjectNode result = JSON.createObjectNode();
        ConnectRecord made;
        try {
            if (plugin instanceof Predicate) {
                return result.put("is", ((Predicate) plugin).test(record));
            }
            made = ((Transformation) plugin).apply(record);
        } catch (Exception error) {
            return result.put("error", described(error));
        }
        if (made == null) {
            return JSON.nullNode();
        }
        result.put("topic", made.topic());
        result.put("timestamp", made.timestamp());
        result.put("key", written(converter, made.keySchema(), made.key()));
        result.put("value", written(converter, made.valueSchema(), made.value()));
        ArrayNode headers = result.putArray("headers");
        for (Object each : made.headers()) {
            Header header = (Header) each;
            byte[] bytes =
                HEADERS.fromConnectHeader("topic", header.key(), header.schema(), header.value());
            headers.addArray().add(header.key())
                .add(bytes == null ? null : new String(bytes, StandardCharsets.UTF_8));
        }
        return result;
    }

    private static String written(
            JsonConverter converter, org.apache.kafka.connect.data.Schema schema, Object value) {
        try {
            byte[] bytes = converter.fromConnectData("topic", schema, value);
            return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
        } catch (Exception error) {
            return "error " + described(error);
        }
    }

    private static String described(Throwable error) {
        return error.getClass().getName() + ": " + error.getMessage();
    }
}
