package guarding

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
	"github.com/holdfast-go/holdfast/fence"
)

var fences = fence.SQL{Dialect: fence.Postgres}

// server has the tables of the examples. No test crashes it.
var server *servers.Postgres

// Tests of several processes run this test's own binary again, with the name of a
// worker in this variable.
const workerVariable = "HOLDFAST_TEST_WORKER"

func TestMain(m *testing.M) {
	if name := os.Getenv(workerVariable); name != "" {
		if err := workers[name](os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(servers.Main(m, func(tb servers.TB) {
		server = servers.StartPostgres(tb, "synchronous_commit = off", "max_connections = 200")
		statement, err := fences.Schema()
		if err != nil {
			tb.Fatalf("%v", err)
		}
		server.Must(Schema + ";" + statement)
	}))
}

// workers are what the other processes do.
var workers = map[string]func(args []string) error{
	"register": registerMany,
	"pause":    writeAfterPause,
}

func worker(t *testing.T, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), workerVariable+"="+name)
	cmd.Stderr = os.Stderr
	return cmd
}

// clients returns the examples, with a pool of so many connections in all.
func clients(ctx context.Context, url string, conns int, locks *holdfast.Locker) (PGX, SQL, GORM, error) {
	pool, err := pgxpool.New(ctx, fmt.Sprintf("%s&pool_max_conns=%d", url, conns))
	if err != nil {
		return PGX{}, SQL{}, GORM{}, err
	}
	context.AfterFunc(ctx, pool.Close)
	db := stdlib.OpenDBFromPool(pool)
	orm, err := openGORM(db)
	return PGX{pool, locks, fences}, SQL{db, locks, fences}, GORM{orm, locks, fences}, err
}

func openGORM(db *sql.DB) (*gorm.DB, error) {
	return gorm.Open(postgres.New(postgres.Config{Conn: db}), &gorm.Config{Logger: logger.Discard, SkipDefaultTransaction: true})
}

// account makes an account of its own for a test.
func account(t *testing.T, balance int64) (id int64) {
	t.Helper()
	rows := server.Must(fmt.Sprintf(`INSERT INTO accounts (id, balance) SELECT count(*) + 1, %d FROM accounts RETURNING id`, balance))
	if _, err := fmt.Sscan(strings.TrimSpace(rows), &id); err != nil {
		t.Fatalf("%q: %v", rows, err)
	}
	return id
}

func balanceOf(id int64) string {
	return strings.TrimSpace(server.Must(fmt.Sprintf(`SELECT balance FROM accounts WHERE id = %d`, id)))
}
