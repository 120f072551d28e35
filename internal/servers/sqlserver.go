package servers

import (
	"context"
	"crypto/rand"
	"database/sql"
	"net/url"
	"os"
	"strings"
)

// SQLServerVariable names the SQL Server of the tests, as in
// sqlserver://user:password@host:port?database=master. The user may create databases and logins.
const SQLServerVariable = "HOLDFAST_TEST_SQLSERVER"

// AnySQLServer makes a database on the server of [SQLServerVariable], and returns the URL. The
// database is removed when the test ends. The test is skipped, also in CI, if there is no server,
// because no server can be started here. The caller imports the client go-mssqldb.
func AnySQLServer(tb TB) (at string) {
	tb.Helper()
	given := os.Getenv(SQLServerVariable)
	if given == "" {
		tb.Skipf("%s is not set: want the URL of a SQL Server", SQLServerVariable)
	}
	u, err := url.Parse(given)
	if err != nil {
		tb.Fatalf("%s is no URL", SQLServerVariable) // without the URL, which may have a password
	}
	within := func(database string) string {
		query := u.Query()
		query.Set("database", database)
		u.RawQuery = query.Encode()
		return u.String()
	}
	admin, err := sql.Open("sqlserver", within("master"))
	if err != nil {
		tb.Fatalf("%s: the client refuses the URL", SQLServerVariable)
	}
	name := "holdfast_" + rand.Text()
	do := func(statement string) error {
		_, err := admin.ExecContext(context.Background(), statement)
		return err
	}
	// Babelfish fails if two sessions create databases at the same time.
	err = do("CREATE DATABASE " + name)
	for err != nil && strings.Contains(err.Error(), "concurrently updated") {
		err = do("CREATE DATABASE " + name)
	}
	if err != nil {
		admin.Close()
		tb.Fatalf("%s: %v", SQLServerVariable, err)
	}
	tb.Cleanup(func() {
		defer admin.Close()
		if err := do("DROP DATABASE " + name); err != nil {
			tb.Logf("remove the database of the test: %v", err)
		}
	})
	return within(name)
}
