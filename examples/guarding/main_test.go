package guarding

import (
	"context"
	"errors"
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
	"github.com/holdfast-go/holdfast/dialect"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/pglock"
)

var fences = fence.SQL{Dialect: dialect.Postgres}

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
		server = servers.AnyPostgres(tb, "fsync = off", "max_connections = 200")
		if err := createTables(context.Background(), server.URL()); err != nil {
			tb.Fatalf("%v", err)
		}
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

// A process is the examples as one process has them: with a pool of connections,
// and locks in the same database.
type process struct {
	pool  *pgxpool.Pool
	store *pglock.Store
	locks *holdfast.Locker
	pgx   PGX
	sql   SQL
	gorm  GORM
}

func start(ctx context.Context, url string, conns int, opts *holdfast.Options) (*process, error) {
	pool, err := pgxpool.New(ctx, fmt.Sprintf("%s&pool_max_conns=%d", url, conns))
	if err != nil {
		return nil, err
	}
	db := stdlib.OpenDBFromPool(pool)
	orm, err := gorm.Open(postgres.New(postgres.Config{Conn: db}), &gorm.Config{Logger: logger.Discard, SkipDefaultTransaction: true})
	if err != nil {
		pool.Close()
		return nil, err
	}
	p := &process{pool: pool, store: must.Get(pglock.New(pool, nil))}
	p.locks = must.Get(holdfast.New(p.store, opts))
	p.pgx, p.sql, p.gorm = PGX{Pool: pool, Locks: p.locks, Fences: fences}, SQL{db, p.locks, fences}, GORM{orm, p.locks, fences}
	return p, nil
}

func (p *process) end() {
	p.locks.Close()
	p.pool.Close()
}

// createTables makes all that the examples need.
func createTables(ctx context.Context, url string) error {
	p, err := start(ctx, url, 2, nil)
	if err != nil {
		return err
	}
	defer p.end()
	if _, err := p.pool.Exec(ctx, Schema); err != nil {
		return err
	}
	return errors.Join(p.store.Create(ctx), fences.Create(ctx, p.sql.DB))
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
