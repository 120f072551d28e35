//go:build unix

package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/holdfast-go/holdfast/internal/build"
	"github.com/holdfast-go/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// patient bounds what a script waits for. Nothing is decided by it: a test that
// needs so long has failed anyway.
const patient = time.Minute

func TestMain(m *testing.M) {
	os.Setenv("GORACE", noSleep)
	testscript.Main(withPrograms{m}, commands)
}

// noSleep keeps the race detector from making each process a second longer.
const noSleep = "atexit_sleep_ms=0"

// TestScript runs the scripts, one per behaviour, with processes as users have
// them. Besides the commands of testscript they have
//
//	exits CODE COMMAND...        run a command that ends with this code, or with one of several
//	                             with | between them; if the store has not answered it, try again
//	launch NAME COMMAND...       start a command, and again as exits does; its output goes to
//	                             NAME.out and NAME.err
//	signal NAME SIGNAL           send it a signal
//	finish NAME CODE|SIGNAL      wait for its end, with this code or by this signal
//	await FILE [REGEXP]          wait until a file is there and matches
//	until REGEXP COMMAND...      repeat a command until its output matches
//	dead FILE                    wait until the process with the number in FILE is gone
//	together N COMMAND...        start a command N times at once, and wait until all have succeeded;
//	                             each tries again if the store has not answered it, or if its lock
//	                             was lost before the command under the lock could begin
//
// and the programs worker, seize, ailing and hasty, and in the environment the URLs of
// stores that they share, as [stores] has them.
func TestScript(t *testing.T) {
	urls := stores(t)
	programs := ""
	if !testing.Short() {
		programs = builtVerifier(t)
	}
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOLDFAST_STORE", "file://"+filepath.Join(env.WorkDir, "locks"))
			if programs != "" {
				env.Setenv("PATH", programs+":"+env.Getenv("PATH"))
			}
			for name, url := range urls {
				env.Setenv(name, url)
			}
			env.Setenv("GORACE", noSleep)
			env.Values["launched"] = make(map[string]*launched)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":    exits,
			"launch":   launch,
			"signal":   sendSignal,
			"finish":   finish,
			"await":    await,
			"until":    until,
			"dead":     dead,
			"together": together,
		},
		RequireUniqueNames: true,
	})
}

// withPrograms runs tests, and removes the programs that they have built.
type withPrograms struct{ *testing.M }

func (m withPrograms) Run() int {
	dir, err := os.MkdirTemp("", "holdfast-programs-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	verifierDir = filepath.Join(dir, "verify")
	flag.Parse() // not before Main, which may run a command with other flags
	return m.M.Run()
}

var verifierDir string

// builtVerifier builds what "holdfast verify" runs, once, under the race detector if that
// looks at this test, and returns the folder of the program.
func builtVerifier(t *testing.T) (dir string) {
	t.Helper()
	if err := buildVerifier(); err != nil {
		t.Fatal(err)
	}
	return verifierDir
}

var buildVerifier = sync.OnceValue(func() error {
	args := []string{"build", "-o", verifierDir + "/"} // the slash makes it a folder
	if build.Race() {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, "../holdfast-verify")...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return nil
})

// stores starts the servers and returns their URLs: $REDIS of one Redis server,
// $REDLOCK of three, $MEMCACHED, $ZOOKEEPER, $S3, $GCS, $DYNAMODB without its
// table, $AZURE, $ETCD of one member alone, and of the
// databases $POSTGRES and $MYSQL that of a user who may do anything,
// $POSTGRES_VIEWER that of one who may only read, by the password looks, and
// $POSTGRES_WRONG the same with the wrong password moonlight. With -short there are
// $REDIS and the databases of PostgreSQL only.
func stores(t *testing.T) map[string]string {
	redis := servers.StartRedis(t)
	postgres := servers.StartPostgres(t) // durable, or the commands would warn
	postgres.Must(`CREATE ROLE viewer LOGIN PASSWORD 'looks'; ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO viewer`)
	urls := map[string]string{"REDIS": redis.URL(), "POSTGRES": postgres.URL()}
	if !testing.Short() {
		more := servers.StartMasters(t, 2)
		mysql := servers.StartMariaDB(t, "innodb_flush_method = nosync")
		mysql.Must(`CREATE USER viewer@'%' IDENTIFIED BY 'looks'; GRANT SELECT ON holdfast.* TO viewer@'%'`)
		urls["REDLOCK"] = fmt.Sprintf("redlock://%s,%s,%s?quarantine=0", redis.Addr(), more[0].Addr(), more[1].Addr())
		urls["MYSQL"] = mysql.URL()
		urls["MEMCACHED"] = servers.StartMemcached(t).URL()
		urls["ZOOKEEPER"] = servers.StartZooKeeper(t, "forceSync=no").URL()
		urls["ETCD"] = servers.StartEtcd(t).URL()
		urls["GCS"] = servers.StartGCS(t).URL()
		urls["DYNAMODB"] = servers.StartDynamoDBWithoutTable(t).URL()
		urls["S3"] = servers.StartS3(t).URL()
		urls["AZURE"] = servers.StartAzurite(t).URL()
	}
	for _, name := range []string{"POSTGRES", "MYSQL"} {
		if urls[name] == "" {
			continue
		}
		u, err := url.Parse(urls[name])
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.UserPassword("viewer", "looks")
		urls[name+"_VIEWER"] = u.String()
		u.User = url.UserPassword("viewer", "moonlight")
		urls[name+"_WRONG"] = u.String()
	}
	return urls
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, !neg && len(args) >= 2, "exits CODE COMMAND...")
	var want []int
	for code := range strings.SplitSeq(args[0], "|") {
		want = append(want, number(ts, code))
	}
	got := 0
	err := insist(func() error { return ts.Exec(args[1], args[2:]...) }, want...)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if !slices.Contains(want, got) {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

func command(ts *testscript.TestScript, args []string) *exec.Cmd {
	path, err := exec.LookPath(args[0])
	ts.Check(err)
	cmd := exec.Command(path, args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal, whoever runs the tests
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "GORACE", "HOLDFAST_STORE"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	return cmd
}

func await(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, !neg && (len(args) == 1 || len(args) == 2), "await FILE [REGEXP]")
	want := regexp.MustCompile("(?m)" + append(args, "")[1])
	var text []byte
	poll(ts, 10*time.Millisecond, func() bool {
		var err error
		text, err = os.ReadFile(ts.MkAbs(args[0]))
		return err == nil && want.Match(text)
	}, func() { ts.Fatalf("%s does not match %s:\n%s", args[0], want, text) })
}

func until(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, !neg && len(args) >= 2, "until REGEXP COMMAND...")
	want := regexp.MustCompile("(?m)" + args[0])
	var text []byte
	poll(ts, startPause, func() bool {
		text, _ = command(ts, args[1:]).CombinedOutput()
		return want.Match(text)
	}, func() { ts.Fatalf("output does not match %s:\n%s", want, text) })
}

func dead(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, !neg && len(args) == 1, "dead FILE")
	pid := number(ts, string(bytes.TrimSpace([]byte(ts.ReadFile(args[0])))))
	poll(ts, startPause, func() bool { return gone(pid) }, func() { ts.Fatalf("process %d still runs", pid) })
}

// gone reports whether a process has ended. A process that its parent has not waited for
// yet counts as ended, but not while some of its threads end: the parent cannot wait for it then.
func gone(pid int) bool {
	if syscall.Kill(pid, 0) == syscall.ESRCH {
		return true
	}
	// On a busy machine ps takes seconds, and run_signals has less than five.
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		state, threads := string(fields[0]), string(fields[17]) // 3 and 20 in proc(5)
		return state == "Z" && threads == "1"
	}
	out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err != nil || bytes.HasPrefix(bytes.TrimSpace(out), []byte("Z")) && !bytes.Contains(out, []byte("l"))
}

func together(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, !neg && len(args) >= 2, "together N COMMAND...")
	type result struct {
		out []byte
		err error
	}
	n := number(ts, args[0])
	results := make(chan result)
	for range n {
		go func() {
			var r result
			for unbegun := true; unbegun; unbegun = bytes.Contains(r.out, []byte("is not ours any more: ")) {
				r.err = insist(func() (err error) {
					r.out, err = command(ts, args[1:]).CombinedOutput()
					return err
				})
			}
			results <- r
		}()
	}
	failed := 0
	for range n {
		if r := <-results; r.err != nil {
			ts.Logf("%v\n%s", r.err, r.out)
			failed++
		}
	}
	if failed > 0 {
		ts.Fatalf("%d of %d have failed", failed, n)
	}
}

// insist runs a command, and once more as long as the store does not answer, unless
// that is wanted: nothing has been done then, and on a busy machine it says nothing of
// the store.
func insist(run func() error, want ...int) (err error) {
	for begin := time.Now(); time.Since(begin) < patient; {
		err = run()
		if exit := (*exec.ExitError)(nil); slices.Contains(want, cli.ExitUnreachable) || !errors.As(err, &exit) || exit.ExitCode() != cli.ExitUnreachable {
			break
		}
	}
	return err
}

// startPause is the pause of a poll that starts a process, which takes processor time.
const startPause = 100 * time.Millisecond

// poll calls done, with a pause between two calls, until done returns true.
func poll(ts *testscript.TestScript, pause time.Duration, done func() bool, otherwise func()) {
	limit := time.After(patient)
	for !done() {
		select {
		case <-time.After(pause):
		case <-limit:
			otherwise()
		}
	}
}

func need(ts *testscript.TestScript, ok bool, usage string) {
	if !ok {
		ts.Fatalf("usage: %s", usage)
	}
}

func number(ts *testscript.TestScript, text string) int {
	n, err := strconv.Atoi(text)
	ts.Check(err)
	return n
}
