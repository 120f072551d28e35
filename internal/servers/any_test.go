package servers

import (
	"strings"
	"testing"
)

// TestAnyPostgres: the tests have a database of their own on a server that is
// there already, and leave it as it was.
func TestAnyPostgres(t *testing.T) {
	there := sharedPostgres(t)
	const count = "SELECT count(*) FROM pg_database"
	before := there.Must(count)
	t.Setenv("HOLDFAST_TEST_POSTGRES", strings.TrimSuffix(there.URL(), "?sslmode=disable"))
	t.Run("in use", func(t *testing.T) {
		for range 2 {
			p := AnyPostgres(t)
			if p.Must("CREATE TABLE t (a int); SELECT current_database()") == "postgres" || p.Addr() != there.Addr() {
				t.Errorf("the tests use %s", p.URL())
			}
		}
	})
	if after := there.Must(count); after != before {
		t.Errorf("%s databases are left, and %s were there", after, before)
	}
	t.Setenv("HOLDFAST_TEST_POSTGRES", "")
	if p := AnyPostgres(t, "max_connections = 17"); p.Must("SHOW max_connections") != "17" {
		t.Error("the options are not those of the server that was started")
	}
}

// TestAnyMariaDB is the same for MariaDB.
func TestAnyMariaDB(t *testing.T) {
	there := StartMariaDB(t, "innodb_flush_method = nosync")
	const count = "SELECT count(*) FROM information_schema.schemata"
	before := there.Must(count)
	t.Setenv("HOLDFAST_TEST_MYSQL", there.URL())
	t.Run("in use", func(t *testing.T) {
		for range 2 {
			m := AnyMariaDB(t)
			if m.Must("CREATE TABLE t (a int); SELECT database()") == mariaDatabase || m.Addr() != there.Addr() {
				t.Errorf("the tests use %s", m.URL())
			}
		}
	})
	if after := there.Must(count); after != before {
		t.Errorf("%s databases are left, and %s were there", after, before)
	}
}

func TestAnyOfNoURL(t *testing.T) {
	t.Setenv("HOLDFAST_TEST_POSTGRES", "host=elsewhere password=s3same")
	t.Setenv("HOLDFAST_TEST_MYSQL", "mysql://u:s3same@elsewhere/")
	for variable, start := range map[string]func(TB){
		"HOLDFAST_TEST_POSTGRES": func(tb TB) { AnyPostgres(tb) },
		"HOLDFAST_TEST_MYSQL":    func(tb TB) { AnyMariaDB(tb) },
	} {
		v := failing(t, start)
		if !strings.Contains(v.fatal, variable) || strings.Contains(v.fatal, "s3same") {
			t.Errorf("the test ended with %q", v.fatal)
		}
	}
}
