package holdfast_test

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/markdown"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// TestReadmeInFiles follows the README without a server: a module, the commands that
// join the module with a checkout, the loop with "" only, and the program.
func TestReadmeInFiles(t *testing.T) {
	commands := clone(t) + strings.ReplaceAll(readme(t, "sh", "/pglock"), " /pglock;", ";")
	commands = strings.ReplaceAll(commands, "/pglock@", "@")
	out := checkout(t, readme(t, "go", "file:locks"), commands)
	if !strings.Contains(out, "one process at a time, with fencing token ") {
		t.Errorf("the program says %q", out)
	}
}

// TestReadmeInRedis follows the README with go-redis, on a Redis at another address.
func TestReadmeInRedis(t *testing.T) {
	const address = `"localhost:6379"`
	program := readme(t, "go", address)
	server := servers.StartRedis(t)
	server.Must("SET", "balance/42", "300")
	out := checkout(t, strings.Replace(program, address, `"`+server.Addr()+`"`, 1), readme(t, "sh", "git clone"))
	if !strings.Contains(out, "under the lock account/42") {
		t.Errorf("the program says %q", out)
	}
	if balance := server.Must("GET", "balance/42"); balance != "200" {
		t.Errorf("the program has left a balance of %v, want 200", balance)
	}
}

// TestReadmeInPostgres follows the README and the page of PostgreSQL: "holdfast init" as the
// administrator, the GRANT, and the program as a user with no other rights.
func TestReadmeInPostgres(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 20 s: make prove")
	}
	const page, address, admin = "docs/stores/postgres.md", "postgres://app@localhost/app", "postgres://admin@localhost/app"
	server := servers.StartPostgres(t)
	server.Must("CREATE ROLE app LOGIN PASSWORD 'app'")
	at, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	at.User = url.UserPassword("app", "app")
	_, line, _ := strings.Cut(block(t, page, "sh", "holdfast init"), "\nholdfast ")
	words := strings.Fields(strings.ReplaceAll(line, admin, server.URL()))
	if out, err := exec.Command("go", append([]string{"run", "./cmd/holdfast"}, words...)...).CombinedOutput(); err != nil {
		t.Fatalf("holdfast %s: %v\n%s", line, err, out)
	}
	server.Must(block(t, page, "sql", "GRANT"))
	program := strings.ReplaceAll(block(t, page, "go", address), address, at.String())
	out := checkout(t, program, clone(t)+readme(t, "sh", "/pglock"))
	if !strings.Contains(out, "locked, with fencing token ") {
		t.Errorf("the program says %q", out)
	}
}

// clone returns the commands of the README until there is a checkout.
func clone(t *testing.T) string {
	t.Helper()
	commands, _, _ := strings.Cut(readme(t, "sh", "git clone"), "for m in")
	return commands
}

// checkout runs a program after these commands of the README, in a module of its own. The
// clone is this tree.
func checkout(t *testing.T, program, commands string) string {
	t.Helper()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	app := filepath.Join(t.TempDir(), "app")
	if err := os.Mkdir(app, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(app, "main.go"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	const git = `git() { test "$1 $2" = "clone https://github.com/holdfast-go/holdfast" && ln -s "$ROOT" "$3"; }`
	shell := func(script string) (string, error) {
		cmd := exec.Command("sh", "-euc", script)
		cmd.Dir = app
		cmd.Env = append(os.Environ(), "ROOT="+root, "GOWORK=off", "GOFLAGS=-buildvcs=false", "GOSUMDB=off")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := shell(git + "\ngo mod init example.com/app\n" + commands)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err = shell("go run .")
	began := time.Now() // The first run also compiles, which the minute for a late answer does not include.
	for err != nil && time.Since(began) < time.Minute && strings.Contains(out, "has not answered") {
		out, err = shell("go run .")
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return out
}

// TestReadmeTargets asks make for each target that the README names.
func TestReadmeTargets(t *testing.T) {
	for line := range strings.Lines(readme(t, "sh", "make ")) {
		target := strings.Fields(line)[1]
		if out, err := exec.Command("make", "--dry-run", target).CombinedOutput(); err != nil {
			t.Errorf("make %s: %v\n%s", target, err, out)
		}
	}
}

// readme returns a block of the README.
func readme(t *testing.T, lang, text string) string {
	t.Helper()
	return block(t, "README.md", lang, text)
}

// block returns the first block of a page in a language that has this text.
func block(t *testing.T, page, lang, text string) string {
	t.Helper()
	document, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := markdown.Blocks(string(document))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks {
		if b.Lang == lang && strings.Contains(b.Text, text) {
			return b.Text
		}
	}
	t.Fatalf("%s has no %s block with %q", page, lang, text)
	return ""
}
