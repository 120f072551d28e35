package main

import (
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/build"
	"github.com/holdfast-go/holdfast/internal/servers"
)

var (
	rehearse = flag.Bool("rehearse", false, "rehearse a release, which takes minutes")
	save     = flag.String("save", "", "write the table of the rehearsal into this `file` of the repository, too")
)

// early2024 is what an application of early 2024 may require besides. A lock should
// not raise the version of any.
var early2024 = []string{
	"github.com/gin-gonic/gin@v1.9.1",
	"github.com/go-sql-driver/mysql@v1.7.1",
	"github.com/google/uuid@v1.5.0",
	"github.com/jackc/pgx/v5@v5.5.2",
	"github.com/prometheus/client_golang@v1.18.0",
	"github.com/redis/go-redis/v9@v9.4.0",
	"github.com/spf13/cobra@v1.8.0",
	"github.com/stretchr/testify@v1.8.4",
	"go.opentelemetry.io/otel@v1.22.0",
	"go.uber.org/zap@v1.26.0",
	"google.golang.org/grpc@v1.61.0",
}

// An act of the rehearsal is a program that a user builds.
type act struct {
	what    string   // the package whose module the user gets
	imports []string // what else the program imports of the repository
	program string   // the part after the imports; "" if what is a command
	most    int      // how many modules the program may list, itself included; 0 for any number
	size    float64  // how many megabytes the program may have; 0 for any size

	// start starts a server and returns the arguments of the program; nil if the
	// program is only built.
	start func(*testing.T) []string
}

// acts are all stores, all integrations and the command. Those with a limit on modules
// may raise none of early2024 either.
var acts = []act{
	{what: "memlock", program: opened, most: 2, start: at(func(*testing.T) string { return "mem://" })},
	{what: "filelock", program: opened, most: 2, start: at(file("file"))},
	{what: "memcachelock", program: opened, most: 2, start: at(func(t *testing.T) string { return servers.StartMemcached(t).URL() })},
	{what: "zklock", program: opened, most: 2, start: at(func(t *testing.T) string { return servers.StartZooKeeper(t, "forceSync=no").URL() })},
	{what: "redislock", program: opened, most: 10, start: at(func(t *testing.T) string { return servers.StartRedis(t).URL() })},
	{what: "redislock/goredis", program: goredis, start: at(func(t *testing.T) string { return servers.StartRedis(t).Addr() })},
	{what: "redlock", imports: []string{"redislock"}, program: opened, most: 10, start: at(masters)},
	{what: "redislock/redisonce", program: empty, most: 10},
	{what: "etcdlock", program: opened, start: at(func(t *testing.T) string { return servers.StartEtcd(t).URL() })},
	{what: "natslock", program: opened, start: at(func(t *testing.T) string { return servers.StartNATS(t).URL() })},
	{what: "s3lock", program: opened, start: at(func(t *testing.T) string { return servers.StartS3(t).URL() })},
	{what: "gcslock", program: opened, start: at(func(t *testing.T) string { return servers.StartGCS(t).URL() })},
	{what: "dynamodblock", program: opened, start: at(func(t *testing.T) string { return servers.StartDynamoDB(t).URL() })},
	{what: "azurelock", program: opened, start: at(func(t *testing.T) string { return servers.StartAzurite(t).URL() })},
	{what: "pglock", program: opened, start: at(func(t *testing.T) string { return servers.StartPostgres(t).URL() })},
	{what: "mssqllock", program: opened}, // no server can be started
	{what: "mysqllock", program: opened, start: at(func(t *testing.T) string { return servers.StartMariaDB(t).URL() })},
	{what: "sqlitelock", program: opened, start: at(file("sqlite"))},
	{what: "all", program: opened, start: at(file("file"))},
	{what: "schedlock", program: empty},
	{what: "gocronlock", program: empty},
	{what: "grpclock", program: empty},
	{what: "ginlock", program: empty},
	{what: "otellock", program: empty},
	{what: "certlock", program: empty},
	// Before v1.36.12, protobuf keeps the linker from dropping methods.
	{what: "cmd/holdfast", size: 36, start: func(t *testing.T) []string {
		return []string{"run", "--store", file("file")(t), "key", "--", "echo", "locked"}
	}},
	{what: "cmd/holdfast-verify"},
	{what: "cmd/holdfastvet"},
}

func at(url func(*testing.T) string) func(*testing.T) []string {
	return func(t *testing.T) []string { return []string{url(t)} }
}

func file(scheme string) func(*testing.T) string {
	return func(t *testing.T) string {
		u := url.URL{Scheme: scheme, Path: filepath.ToSlash(filepath.Join(t.TempDir(), "locks"))}
		return u.String()
	}
}

func masters(t *testing.T) string {
	var all []string
	for _, server := range servers.StartMasters(t, 3) {
		all = append(all, server.Addr())
	}
	return "redlock://" + strings.Join(all, ",") + "?quarantine=0" // new servers have forgotten no lock
}

// The programs. A program that takes a lock prints "locked".
const (
	empty = `func main() {}
`
	opened = `func main() {
	ctx := context.Background()
	store, err := driver.Open(ctx, os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	if c, ok := store.(driver.Creator); ok {
		if err := c.Create(ctx); err != nil {
			log.Fatal(err)
		}
	}
	locks, err := holdfast.New(store, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	if err := locks.Do(ctx, "key", func(context.Context) error { fmt.Println("locked"); return nil }); err != nil {
		log.Fatal(err)
	}
}
`
	goredis = `func main() {
	client := redis.NewClient(&redis.Options{Addr: os.Args[1]})
	defer client.Close()
	store, err := goredis.New(client, nil)
	if err != nil {
		log.Fatal(err)
	}
	locks, err := holdfast.New(store, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	if err := locks.Do(context.Background(), "key", func(context.Context) error { fmt.Println("locked"); return nil }); err != nil {
		log.Fatal(err)
	}
}
`
)

// source returns the program of an act.
func (a act) source() string {
	imports := map[string]string{
		opened:  "\"context\"\n\"fmt\"\n\"log\"\n\"os\"\n" + fmt.Sprintf("%q\n%q\n", root, root+"/driver"),
		goredis: "\"context\"\n\"fmt\"\n\"log\"\n\"os\"\n" + fmt.Sprintf("%q\n%q\n", root, "github.com/redis/go-redis/v9"),
	}[a.program]
	for _, name := range append(slices.Clone(a.imports), a.what) {
		if name == "redislock/goredis" { // the program names the package
			imports += fmt.Sprintf("%q\n", root+"/"+name)
		} else {
			imports += fmt.Sprintf("_ %q\n", root+"/"+name)
		}
	}
	return "package main\n\nimport (\n" + imports + ")\n\n" + a.program
}

// The programs have no mistakes that the rehearsal would find only after minutes. The packages
// that they import are those of the tests, under the race detector or not.
func TestPrograms(t *testing.T) {
	args := []string{"list", "-export"}
	if build.Race() {
		args = append(args, "-race")
	}
	for _, i := range []int{
		slices.IndexFunc(acts, func(a act) bool { return a.program == opened }),
		slices.IndexFunc(acts, func(a act) bool { return a.program == goredis }),
	} {
		name := filepath.Join(t.TempDir(), "main.go")
		if err := os.WriteFile(name, []byte(acts[i].source()), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("go", append(args, name)...).CombinedOutput(); err != nil {
			t.Errorf("the program of %s: %v\n%s", acts[i].what, err, out)
		}
	}
}

// TestRehearsal packs all modules as a proxy would serve them, and then does what users
// do, in empty folders without a workspace: get each module, build a program with it,
// take a lock with the program. "make rehearsal" runs the test.
func TestRehearsal(t *testing.T) {
	if !*rehearse {
		t.Skip("takes minutes: make rehearsal runs it")
	}
	s := newStage(t)
	var table strings.Builder
	table.WriteString("| package | modules listed | raised of eleven | raised in all | program |\n|---|--:|--:|--:|--:|\n")
	for _, a := range acts {
		t.Run(a.what, func(t *testing.T) {
			s := s.of(t)
			dir := s.module(a)
			program := s.build(dir, a)
			listed := len(s.required(dir)) + 1
			raised, ofEleven := s.raised(a)
			if a.most > 0 && listed > a.most {
				t.Errorf("the program lists %d modules, want %d at most:\n%s", listed, a.most, s.in(dir, "go", "list", "-m", "all"))
			}
			if a.most > 0 && len(ofEleven) > 0 {
				t.Errorf("an application of early 2024 has to raise what it has besides:\n%s", strings.Join(ofEleven, "\n"))
			}
			info, err := os.Stat(program)
			if err != nil {
				t.Fatal(err)
			}
			size := float64(info.Size()) / 1e6
			if a.size > 0 && size >= a.size {
				t.Errorf("the program has %.1f MB, want less than %g", size, a.size)
			}
			fmt.Fprintf(&table, "| `%s` | %d | %d | %d | %.1f MB |\n", a.what, listed, len(ofEleven), len(raised), size)
			t.Logf("raised:\n%s", strings.Join(raised, "\n"))
			if a.start == nil {
				return
			}
			if out := s.in(dir, program, a.start(t)...); strings.TrimSpace(out) != "locked" {
				t.Errorf("the program prints %q", out)
			}
		})
	}
	fmt.Print(table.String())
	if *save != "" && !t.Failed() && strings.Count(table.String(), "\n") == len(acts)+2 { // no part in place of the whole
		if err := os.WriteFile(filepath.Join("../..", *save), []byte(head+table.String()), 0o644); err != nil {
			t.Error(err)
		}
	}
}

const head = `# The release rehearsal

` + "`make rehearsal REHEARSAL=-save=docs/results/rehearsal.md`" + ` has written this file.

All modules are packed at one version, as a module proxy would serve them. For each
package, a program in an empty folder gets the module and is built; with stores and the
command, the program also takes a lock on a real server.

- Modules listed: what ` + "`go list -m all`" + ` lists, with the program itself.
- Raised of eleven: an application of early 2024 requires eleven common libraries (gin,
  go-sql-driver/mysql, google/uuid, pgx, the Prometheus client, go-redis, cobra, testify,
  OpenTelemetry, zap, gRPC). So many of the eleven get a newer version when the
  application gets the package.
- Raised in all: so many of all modules that the application lists.
- Program: the size of the binary, built as a release builds the command, without cgo:
  ` + "`" + `go build -trimpath -tags=grpcnotrace -ldflags="-s -w"` + "`" + `.

`
