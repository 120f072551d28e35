package servers

import (
	"bufio"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A psql is an open session.
type psql struct {
	t     *testing.T
	input io.Writer
	lines *bufio.Scanner
}

// openPsql starts a session, through a proxy at addr perhaps.
func openPsql(t *testing.T, p *Postgres, addr string) *psql {
	t.Helper()
	cmd := exec.Command(p.program("psql"), "--no-psqlrc", "--quiet", "--no-align", "--tuples-only",
		strings.Replace(p.URL(), p.Addr(), addr, 1))
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return &psql{t: t, input: input, lines: bufio.NewScanner(output)}
}

func (s *psql) send(sql string) {
	s.t.Helper()
	if _, err := io.WriteString(s.input, sql+"\n"); err != nil {
		s.t.Fatal(err)
	}
}

func (s *psql) wantLine(want string) {
	s.t.Helper()
	if !s.lines.Scan() {
		s.t.Fatalf("psql ended before %q: %v", want, s.lines.Err())
	}
	if got := s.lines.Text(); !strings.Contains(got, want) {
		s.t.Errorf("psql said %q, want %q", got, want)
	}
}

func TestPostgres(t *testing.T) {
	p := StartPostgres(t, "max_connections = 17")
	if got := p.Must("SHOW max_connections; SHOW fsync"); got != "17\non" {
		t.Errorf("the settings are %q", got)
	}
	p.Must("CREATE TABLE t (a int, b text); INSERT INTO t VALUES (1, 'x')")
	addr := p.Addr()
	p.Kill()
	if _, err := p.Do("SELECT 1"); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("a killed server says %v", err)
	}
	p.Restart()
	if got := p.Must("SELECT * FROM t"); got != "1|x" || p.Addr() != addr {
		t.Errorf("after a restart it has %q at %s, and was at %s", got, p.Addr(), addr)
	}
	_, err := p.Do("SELECT 1; SELECT nonsense; SELECT 2")
	if err == nil || !strings.Contains(err.Error(), `column "nonsense" does not exist`) {
		t.Errorf("got %v", err)
	}
}

func TestPostgresPassword(t *testing.T) {
	p := StartPostgres(t)
	u, err := url.Parse(p.URL())
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("postgres", "wrong")
	_, err = query(exec.Command(p.program("psql"), u.String()), "SELECT 1")
	if err == nil || !strings.Contains(err.Error(), "password authentication failed") {
		t.Errorf("with a wrong password: %v", err)
	}
}

func TestPostgresStop(t *testing.T) {
	p := StartPostgres(t)
	s := openPsql(t, p, p.Addr())
	s.send("SELECT 1;")
	s.wantLine("1")
	p.Stop()
	if !strings.Contains(p.log(), "database system is shut down") {
		t.Errorf("the server was not asked to end; its log says\n%s", p.log())
	}
	p.Restart()
	p.Must("SELECT 1")
}

func TestPostgresURL(t *testing.T) {
	t.Setenv("HOLDFAST_TEST_POSTGRES", "postgres://elsewhere")
	if got := PostgresURL(t); got != "postgres://elsewhere" {
		t.Errorf("got %s", got)
	}
	t.Setenv("HOLDFAST_TEST_POSTGRES", "")
	u, err := url.Parse(PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

func TestMissingPostgres(t *testing.T) {
	if found, _ := os.ReadDir("/usr/lib/postgresql"); len(found) > 0 {
		t.Setenv("PATH", "")
		if got := postgresFolder(t); !strings.HasPrefix(got, "/usr/lib/postgresql/") {
			t.Errorf("found %s outside of PATH", got)
		}
	}
	t.Setenv("HOLDFAST_POSTGRES", "/no-such-folder")
	v := failing(t, func(tb TB) { StartPostgres(tb) })
	if !strings.Contains(v.fatal, "/no-such-folder") {
		t.Errorf("the test failed with %q", v.fatal)
	}
}
