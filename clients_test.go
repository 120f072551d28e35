package holdfast_test

// clients says which folders may import a module of others, tests included. A new line here is a decision: what does the module give that a
// page of our own would not, and who keeps it up?
var clients = map[string]string{
	"github.com/spf13/cobra":          "cmd/...",
	"github.com/spf13/pflag":          "cmd/...", // cobra's flags
	"github.com/rogpeppe/go-internal": "cmd/...",

	// Whether a history is linearizable is a search in which it is easy to err, and
	// a sceptic knows this one.
	"github.com/anishathalye/porcupine": "cmd/...",

	// The framework of "go vet": without it, holdfastvet would load packages, build control
	// flow graphs and speak the protocol of -vettool by itself. Newer than v0.49 may need
	// Go 1.26.
	"golang.org/x/tools": "cmd/holdfastvet/...",

	// How golangci-lint finds a linter: one small package.
	"github.com/golangci/plugin-module-register": "cmd/holdfastvet/plugin",

	// The go command packs modules with it, and reads and writes go.mod.
	"golang.org/x/mod": "internal/release",

	// The alternatives of today, to compare with. Newer than v4.17 of redsync needs Go 1.26.
	"github.com/moby/locker":                 "bench/...",
	"github.com/gofrs/flock":                 "bench/...",
	"github.com/go-redsync/redsync/v4":       "bench/...",
	"github.com/bsm/redislock":               "bench/...",
	"cirello.io/dynamolock/v2":               "bench/...",
	"github.com/redis/rueidis/rueidiscompat": "bench/...", // under redsync
	"github.com/bradfitz/gomemcache":         "bench/...",
	"github.com/go-zookeeper/zk":             "bench/...",

	// Pipelines the commands of many goroutines by itself, which makes many
	// locks cheap, and knows Sentinel and Cluster.
	"github.com/redis/rueidis": "redislock/... bench/... cmd/... examples/... proof/...",

	// Most applications with Redis have this client already, and redsync and bsm/redislock
	// use it. Newer than v9.22 needs Go 1.26.
	"github.com/redis/go-redis/v9": "redislock/goredis bench/... proof/...",

	// The Redis of many Go tests, on which locks must work too. Only in tests.
	"github.com/alicebob/miniredis/v2": "proof/...",

	// The S3 of many Go tests, on which locks must work too. Only in tests.
	"github.com/johannesboyne/gofakes3": "proof/...",

	// Several processes write one database, which the standard library cannot
	// do, and bbolt only one process at a time. Without cgo. Newer than v1.59
	// needs Go 1.26.
	"modernc.org/sqlite": "sqlitelock bench/... cmd/... examples/... proof/...",

	// Most applications with NATS have this client already. Newer than v1.54 needs Go 1.26.
	"github.com/nats-io/nats.go": "natslock bench/... proof/...",

	// Most applications on AWS have this client. The latest release of minio-go needs Go 1.26.
	"github.com/aws/aws-sdk-go-v2":                  "dynamodblock s3lock bench/... proof/...",
	"github.com/aws/aws-sdk-go-v2/config":           "dynamodblock s3lock bench/...",
	"github.com/aws/aws-sdk-go-v2/service/dynamodb": "dynamodblock bench/...",
	"github.com/aws/aws-sdk-go-v2/service/s3":       "s3lock bench/... proof/...",
	"github.com/aws/smithy-go":                      "dynamodblock s3lock bench/...", // errors and metadata of the SDK
	"golang.org/x/oauth2":                           "gcslock",                       // The client of Google has 27 MB. Newer than v0.36 needs Go 1.26.

	// Tokens of Entra ID, in all ways of getting one. azblob brings Arrow along, for three requests. Newer azcore needs Go 1.26.
	"github.com/Azure/azure-sdk-for-go/sdk/azcore":     "azurelock",
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity": "azurelock",

	// Most applications with PostgreSQL have this client already. It listens for
	// notifications, which database/sql cannot. Newer than v5.12 may need Go 1.26.
	"github.com/jackc/pgx/v5": "pglock bench/... cmd/... examples/... proof/...",

	// Every application with MySQL or MariaDB has this client already.
	"github.com/go-sql-driver/mysql":  "mysqllock bench/... cmd/... examples/... proof/...",
	"github.com/microsoft/go-mssqldb": "mssqllock bench/... proof/...",

	// Every application with etcd has this client already, and the recipe to compare with:
	// the protocol is gRPC. The newest of v3.6 that does with Go 1.25. From its
	// modules: the stream that keeps leases alive, errors by their codes, how to
	// connect again, and silence on stderr.
	"go.etcd.io/etcd/client/v3": "etcdlock bench/...",
	"go.etcd.io/etcd/api/v3":    "etcdlock",
	"google.golang.org/grpc":    "etcdlock grpclock",
	"go.uber.org/zap":           "etcdlock certlock bench/...",

	// Every gRPC server has these already: the details of a status, and their types.
	"google.golang.org/genproto/googleapis/rpc": "grpclock",
	"google.golang.org/protobuf":                "grpclock",

	// The schedulers that most applications have. gocron's interface is that of its Locker; clockwork is its clock, in tests.
	"github.com/go-co-op/gocron/v2":  "gocronlock examples/...",
	"github.com/robfig/cron/v3":      "schedlock examples/...",
	"github.com/jonboulle/clockwork": "gocronlock",

	// Its storages get different locks. Newer than v0.25.4 needs Go 1.26.
	"github.com/caddyserver/certmagic": "certlock",

	// Programs in Go are observed by OpenTelemetry. The newest for Go 1.25. Collectors and exporters are shown, never shipped.
	"go.opentelemetry.io/otel":                      "otellock",
	"go.opentelemetry.io/otel/metric":               "otellock",
	"go.opentelemetry.io/otel/trace":                "otellock",
	"go.opentelemetry.io/otel/sdk":                  "otellock examples/...",
	"go.opentelemetry.io/otel/sdk/metric":           "otellock examples/...",
	"go.opentelemetry.io/otel/exporters/prometheus": "examples/...",
	"github.com/prometheus/client_golang":           "examples/...",

	// Many applications wrap their transactions in it, and locks and fences must work there. Only shown, never shipped.
	"gorm.io/gorm":            "examples/...",
	"gorm.io/driver/postgres": "examples/...",

	// The routers of many web services, around whose routes httplock must fit. Only shown, never shipped, but for gin, for which the
	// obvious wrapper is wrong. Newer than v1.10 of gin pulls in QUIC and MongoDB.
	"github.com/go-chi/chi/v5":    "examples/...",
	"github.com/labstack/echo/v4": "examples/...",
	"github.com/gin-gonic/gin":    "ginlock examples/...",
}
