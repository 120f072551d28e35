package holdfast_test

import (
	"cmp"
	"encoding/json"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/holdfast-go/holdfast"

// walls says which folders of this repository the shipped files of a folder
// may import, "." being the root. It keeps a store from pulling in the engine
// or another store, and users of the engine from linking stores they never
// open. "/..." stands for a folder and all below it; the longest match counts.
//
// Tests may import what they like, but the root module never imports ext.
var walls = map[string]string{
	"driver":       "", // the standard library only
	"internal/...": "driver internal/...",
	".":            "driver internal/...",
	"drivertest":   "driver internal/...",

	"memlock":  "driver internal/...",
	"filelock": "driver internal/...",
	"sqllock":  "driver internal/...",
	"redlock":  "driver internal/...",

	"fence":        "driver internal/...", // not the engine: stores use it
	"httplock":     ". driver fence once internal/...",
	"once/...":     ". driver fence once internal/...",
	"elect":        ".",
	"examples/...": "...",

	"ext/redislock/...": "driver internal/... ext/internal/... ext/redislock",
	"ext/redisonce":     ". driver fence once internal/... ext/internal/...",
	"ext/memcachelock":  "driver internal/... ext/internal/...",
	"ext/etcdlock":      "driver internal/... ext/internal/...",
	"ext/zklock":        "driver internal/... ext/internal/...",
	"ext/pglock":        "driver fence sqllock internal/... ext/internal/...",
	"ext/mysqllock":     "driver sqllock internal/... ext/internal/...",
	"ext/sqlitelock":    "driver sqllock internal/... ext/internal/...",

	"ext/grpclock":     ". driver fence internal/... ext/internal/...",
	"ext/otellock":     ". driver internal/... ext/internal/...",
	"ext/internal/...": "driver internal/... ext/internal/...",
	"ext/all":          "...",
	"ext/examples/...": "...",
	"ext/cmd/...":      "...",
	"ext/bench/...":    "...",

	"ext/certlock":        ".",
	"ext/schedlock/...":   ". elect internal/... ext/internal/... ext/schedlock",
	"ext/internal/outage": ". driver", // what tests of several stores share
}

// clients says which folders of ext may import a module of others, tests
// included. A new line here is a decision: what does the module give that a
// page of our own would not, and who keeps it up?
var clients = map[string]string{
	"github.com/spf13/cobra":          "ext/cmd/...",
	"github.com/spf13/pflag":          "ext/cmd/...", // cobra's flags
	"github.com/rogpeppe/go-internal": "ext/cmd/...",

	// Whether a history is linearizable is a search in which it is easy to err, and
	// a sceptic knows this one.
	"github.com/anishathalye/porcupine": "ext/cmd/...",

	// What people use today, to compare with. In a module of its own, so that ext
	// does not require it. Newer than v4.17 of redsync needs Go 1.26.
	"github.com/moby/locker":                 "ext/bench/...",
	"github.com/gofrs/flock":                 "ext/bench/...",
	"github.com/go-redsync/redsync/v4":       "ext/bench/...",
	"github.com/bsm/redislock":               "ext/bench/...",
	"github.com/redis/rueidis/rueidiscompat": "ext/bench/...", // under redsync
	"github.com/bradfitz/gomemcache":         "ext/bench/...",
	"github.com/go-zookeeper/zk":             "ext/bench/...",

	// Pipelines the commands of many goroutines by itself, which makes many
	// locks cheap, and knows Sentinel and Cluster.
	"github.com/redis/rueidis": "ext/...",

	// What most applications with Redis have already, and what redsync and
	// bsm/redislock use. Newer than v9.22 needs Go 1.26.
	"github.com/redis/go-redis/v9": "ext/redislock/goredis ext/bench/...",

	// Several processes write one database, which the standard library cannot
	// do, and bbolt only one process at a time. Without cgo. Newer than v1.59
	// needs Go 1.26.
	"modernc.org/sqlite": "ext/...",

	// What most applications with PostgreSQL have already. It listens for
	// notifications, which database/sql cannot. Newer than v5.12 may need Go 1.26.
	"github.com/jackc/pgx/v5": "ext/...",

	// What every application with MySQL or MariaDB has already.
	"github.com/go-sql-driver/mysql": "ext/...",

	// What every application with etcd has already, and the recipe to compare with:
	// the protocol is gRPC. The newest of v3.6 that does with Go 1.25. From its
	// modules: the stream that keeps leases alive, errors by their codes, how to
	// connect again, and silence on stderr.
	"go.etcd.io/etcd/client/v3": "ext/etcdlock ext/bench/...",
	"go.etcd.io/etcd/api/v3":    "ext/etcdlock",
	"google.golang.org/grpc":    "ext/etcdlock ext/grpclock",
	"go.uber.org/zap":           "ext/etcdlock ext/certlock ext/bench/...",

	// What every gRPC server has already: the details of a status, and their types.
	"google.golang.org/genproto/googleapis/rpc": "ext/grpclock",
	"google.golang.org/protobuf":                "ext/grpclock",

	// The schedulers that most applications have. gocron's interface is that of its
	// Locker; clockwork is its clock, in tests.
	"github.com/go-co-op/gocron/v2":  "ext/schedlock/... ext/examples/...",
	"github.com/robfig/cron/v3":      "ext/schedlock/... ext/examples/...",
	"github.com/jonboulle/clockwork": "ext/schedlock/...",

	// Whose storages get other locks. Newer than v0.25.4 needs Go 1.26.
	"github.com/caddyserver/certmagic": "ext/certlock",

	// What programs in Go are observed by. The newest that do with Go 1.25. What
	// collects and exports is shown, never shipped.
	"go.opentelemetry.io/otel":                      "ext/otellock",
	"go.opentelemetry.io/otel/metric":               "ext/otellock",
	"go.opentelemetry.io/otel/trace":                "ext/otellock",
	"go.opentelemetry.io/otel/sdk":                  "ext/otellock ext/examples/...",
	"go.opentelemetry.io/otel/sdk/metric":           "ext/otellock ext/examples/...",
	"go.opentelemetry.io/otel/exporters/prometheus": "ext/examples/...",
	"github.com/prometheus/client_golang":           "ext/examples/...",

	// What many applications wrap around their transactions, in which locks and
	// fences must work. Only shown, never shipped.
	"gorm.io/gorm":            "ext/examples/...",
	"gorm.io/driver/postgres": "ext/examples/...",

	// The routers of many web services, around whose routes httplock must fit. Only
	// shown, never shipped. Newer than v1.10 of gin pulls in QUIC and MongoDB.
	"github.com/go-chi/chi/v5":    "ext/examples/...",
	"github.com/labstack/echo/v4": "ext/examples/...",
	"github.com/gin-gonic/gin":    "ext/examples/...",
}

func TestWalls(t *testing.T) {
	for _, s := range goFiles(t) {
		wall, ok := lookup(walls, s.dir())
		if !ok {
			t.Errorf("%s: no wall for %s: say in walls_test.go what it may import", s.path, s.dir())
			continue
		}
		for _, spec := range s.file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if reason := refuse(s, wall, path); reason != "" {
				t.Errorf("%s:%d: imports %s: %s", s.path, s.line(spec), path, reason)
			}
		}
	}
}

// refuse says why a file may not import a package, "" if it may.
func refuse(s source, wall, path string) string {
	ext := strings.HasPrefix(s.path, "ext/")
	first, _, _ := strings.Cut(path, "/")
	house, ours := folder(path)
	switch {
	case path == "C":
		return "everything builds without a C compiler"
	case !ours && !strings.Contains(first, "."):
		return "" // the standard library
	case ours && !ext && within(house, "ext/..."):
		return "the root module does not know ext"
	case ours && (s.test() || house == s.dir() || anyWithin(house, wall)):
		return ""
	case ours:
		return "the wall of " + s.dir() + " allows only " + cmp.Or(wall, "the standard library")
	case !ext:
		return "the root module uses the standard library only"
	}
	folders, known := clients[longestPrefix(path)]
	if !known {
		return "unknown module: a dependency is a decision, written down in walls_test.go"
	}
	if !anyWithin(s.dir(), folders) {
		return "only for " + folders
	}
	return ""
}

// folder returns the folder of a package of this repository.
func folder(path string) (string, bool) {
	if path == module {
		return ".", true
	}
	return strings.CutPrefix(path, module+"/")
}

// within reports whether a folder matches a pattern, which may end in "...".
func within(folder, pattern string) bool {
	above, open := strings.CutSuffix(pattern, "...")
	return folder == strings.TrimSuffix(above, "/") || open && strings.HasPrefix(folder, above)
}

func anyWithin(folder, patterns string) bool {
	return slices.ContainsFunc(strings.Fields(patterns), func(p string) bool { return within(folder, p) })
}

// lookup returns the entry whose pattern is the longest to match.
func lookup(table map[string]string, name string) (string, bool) {
	best, found := "", false
	for pattern := range table {
		if within(name, pattern) && (!found || len(pattern) > len(best)) {
			best, found = pattern, true
		}
	}
	return table[best], found
}

// longestPrefix returns the module among clients that holds a package.
func longestPrefix(path string) (best string) {
	for client := range clients {
		if within(path, client+"/...") && len(client) > len(best) {
			best = client
		}
	}
	return best
}

// A modfile is what the go command reads in a go.mod or go.work file.
type modfile struct {
	Go        string
	Toolchain string
	Require   []struct {
		Path     string
		Indirect bool
	}
	Replace []struct{ Old, New struct{ Path string } }
	Exclude []any
	Tool    []any
	Use     []struct{ DiskPath string }
}

func readModfile(t *testing.T, args ...string) (m modfile) {
	t.Helper()
	out, err := exec.Command("go", args...).Output()
	if err == nil {
		err = json.Unmarshal(out, &m)
	}
	if err != nil {
		t.Fatalf("go %s: %v", strings.Join(args, " "), err)
	}
	return m
}

func TestRootRequiresNothing(t *testing.T) {
	m := readModfile(t, "mod", "edit", "-json", "go.mod")
	if n := len(m.Require) + len(m.Replace) + len(m.Exclude) + len(m.Tool); n != 0 {
		t.Errorf("go.mod: has %d lines besides module and go: the root module requires nothing; what needs a client goes into ext", n)
	}
}

func TestOthersRequireWhatIsMeant(t *testing.T) {
	known := append(slices.Collect(maps.Keys(clients)), module, module+"/ext")
	for name, want := range map[string]map[string]string{
		"ext/go.mod":       {module: "../"},
		"ext/bench/go.mod": {module: "../../", module + "/ext": "../"},
	} {
		m := readModfile(t, "mod", "edit", "-json", name)
		for _, r := range m.Require {
			if !r.Indirect && !slices.Contains(known, r.Path) {
				t.Errorf("%s: requires %s: a dependency is a decision, written down in walls_test.go", name, r.Path)
			}
		}
		replaced := make(map[string]string)
		for _, r := range m.Replace {
			replaced[r.Old.Path] = r.New.Path
		}
		if !maps.Equal(replaced, want) || len(m.Exclude) != 0 {
			t.Errorf("%s: replaces %v, want %v, or excludes: those who import it would not get that", name, replaced, want)
		}
	}
}

func TestGoVersion(t *testing.T) {
	const oldest = "1.25.0" // newer would shut out users; older lacks testing/synctest
	for name, m := range map[string]modfile{
		"go.mod":           readModfile(t, "mod", "edit", "-json", "go.mod"),
		"ext/go.mod":       readModfile(t, "mod", "edit", "-json", "ext/go.mod"),
		"ext/bench/go.mod": readModfile(t, "mod", "edit", "-json", "ext/bench/go.mod"),
		"go.work":          readModfile(t, "work", "edit", "-json", "go.work"),
	} {
		if m.Go != oldest || m.Toolchain != "" {
			t.Errorf("%s: go %s, toolchain %q: must stay at go %s without a toolchain line", name, m.Go, m.Toolchain, oldest)
		}
		if name == "go.work" && len(m.Use) != 3 {
			t.Errorf("go.work: uses %d modules, want ., ./ext and ./ext/bench", len(m.Use))
		}
	}
}
