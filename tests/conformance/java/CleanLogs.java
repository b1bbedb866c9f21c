import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Cleans logs with Kafka's own cleaner, at times that the caller chooses.
 *
 * <p>Commands on stdin, each with one line of output: {@code open FOLDER MAP_BYTES BUFFER_BYTES
 * KEY=VALUE...} opens a log after a clean shutdown and prints its end offset; {@code clean
 * FIRST_DIRTY_OFFSET END_OFFSET NOW_MS COPY} cleans it once, copies its files to the new folder
 * COPY, and prints the new first dirty offset.
 */
public class CleanLogs {
    private static final KafkaScheduler SCHEDULER = new KafkaScheduler(1);
    private static UnifiedLog log;
    private static Cleaner cleaner;

    public static void main(String[] arguments) throws Exception {
        SCHEDULER.startup();
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.split(" ");
            System.out.println(words[0].equals("open") ? open(words) : clean(words));
        }
        SCHEDULER.shutdown();
    }

    private static long open(String[] words) throws Exception {
        Map<String, String> settings = new HashMap<>();
        for (int index = 4; index < words.length; index++) {
            String[] pair = words[index].split("=");
            settings.put(pair[0], pair[1]);
        }
        log = UnifiedLog.create(
            new File(words[1]), new LogConfig(settings), 0, Long.MAX_VALUE, SCHEDULER,
            new BrokerTopicStats(), Time.SYSTEM, 900_000,
            new ProducerStateManagerConfig(Integer.MAX_VALUE, true), Integer.MAX_VALUE,
            new LogDirFailureChannel(1), true, Optional.empty());
        log.updateHighWatermark(log.logEndOffset());
        int bufferBytes = Integer.parseInt(words[3]);
        cleaner = new Cleaner(
            0, new SkimpyOffsetMap(Integer.parseInt(words[2])), bufferBytes, 1 << 20, 0.9,
            new Throttler(Double.MAX_VALUE, 300, "throttler", "bytes", Time.SYSTEM), Time.SYSTEM,
            partition -> { });
        return log.logEndOffset();
    }

    private static long clean(String[] words) throws Exception {
        LogToClean cleanable = new LogToClean(
            log, Long.parseLong(words[1]), Long.parseLong(words[2]), false);
        long firstDirtyOffset = cleaner.doClean(cleanable, Long.parseLong(words[3])).getKey();
        Path copy = Files.createDirectories(Path.of(words[4]));
        for (var segment : log.logSegments()) {
            segment.flush();
            segment.timeIndex().flush();
        }
        for (File file : log.dir().listFiles()) {
            if (!file.getName().endsWith(".deleted")) {
                Files.copy(file.toPath(), copy.resolve(file.getName()));
            }
        }
        return firstDirtyOffset;
    }
}
