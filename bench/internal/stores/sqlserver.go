package stores

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	_ "github.com/microsoft/go-mssqldb"

	"github.com/holdfast-go/holdfast/internal/servers"
)

func sqlServer() Store {
	return Store{
		Name: "sqlserver", Title: "SQL Server, rows", Waiting: 100, Modules: []string{"github.com/microsoft/go-mssqldb"},
		Sides: []Side{
			{Name: "Holdfast", Open: holdfastAt, Renews: true},
			{Name: "Holdfast, conns by default", Open: byDefault},
			{Name: "row by hand, 5 ms", Kind: Bare, Open: openSQLServerRow},
			{Name: "sp_getapplock on go-mssqldb", Kind: Bare, Open: openAppLock},
		},
		Start: startSQLServer,
	}
}

// startSQLServer makes a database on the server.
func startSQLServer(tb servers.TB, _ time.Duration) *Server {
	own := servers.AnySQLServer(tb)
	create(tb, own)
	db, err := sql.Open("sqlserver", own)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	defer db.Close()
	if _, err := db.Exec("CREATE TABLE bare (name varchar(512) PRIMARY KEY, owner varchar(64), expires datetime2)"); err != nil {
		tb.Fatalf("make the table of the row by hand: %v", err)
	}
	var version string
	if err := db.QueryRow("SELECT @@VERSION").Scan(&version); err != nil {
		tb.Fatalf("read the version of the server: %v", err)
	}
	version, _, _ = strings.Cut(strings.TrimSpace(version), "\n")
	return &Server{At: []string{own + "&conns=64", own}, About: version}
}

func newSQLServer(at string) (*sql.DB, error) {
	db, err := sql.Open("sqlserver", at)
	if err != nil {
		return nil, err
	}
	db.SetMaxIdleConns(64) // a connection for each goroutine that locks
	db.SetMaxOpenConns(64)
	return db, nil
}

func openSQLServerRow(at []string, ttl time.Duration) (*Library, error) {
	db, err := newSQLServer(at[1])
	if err != nil {
		return nil, err
	}
	const (
		take = `UPDATE bare SET owner = @p1, expires = DATEADD(microsecond, @p2, SYSUTCDATETIME()) WHERE name = @p3 AND expires <= SYSUTCDATETIME()`
		add  = `BEGIN TRY INSERT INTO bare (name, owner, expires) VALUES (@p1, '', '2000-01-01') END TRY BEGIN CATCH IF ERROR_NUMBER() <> 2627 THROW END CATCH`
		free = `UPDATE bare SET owner = '', expires = '2000-01-01' WHERE name = @p1 AND owner = @p2`
	)
	lib := rowIn(db, add, free, func(ctx context.Context, key, owner string) (sql.Result, error) {
		return db.ExecContext(ctx, take, owner, ttl.Microseconds(), key)
	})
	return lib, nil
}

// openAppLock has a connection for each waiter and each holder, which waits in the server.
func openAppLock(at []string, _ time.Duration) (*Library, error) {
	db, err := newSQLServer(at[1])
	if err != nil {
		return nil, err
	}
	const (
		take = `DECLARE @got int; EXEC @got = sp_getapplock @Resource = @p1, @LockMode = 'Exclusive', @LockOwner = 'Session', @LockTimeout = 3600000; SELECT @got`
		free = `DECLARE @got int; EXEC @got = sp_releaseapplock @Resource = @p1, @LockOwner = 'Session'; SELECT @got`
	)
	answers := func(ctx context.Context, conn *sql.Conn, text, key string) error {
		var got int
		err := conn.QueryRowContext(ctx, text, key).Scan(&got)
		if err == nil && got < 0 {
			err = fmt.Errorf("the server returned %d", got)
		}
		return err
	}
	return &Library{
		Lock: func(ctx context.Context, key string) (func() error, error) {
			conn, err := db.Conn(ctx)
			if err != nil {
				return nil, err
			}
			if err := answers(ctx, conn, take, key); err != nil {
				return nil, errors.Join(err, conn.Close())
			}
			return func() error {
				return errors.Join(answers(context.Background(), conn, free, key), conn.Close())
			}, nil
		},
		Close: func() { _ = db.Close() },
	}, nil
}
