package servers

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestOrphan kills a test binary. Its servers have to go with it, and all that
// they have started, though they were paused.
func TestOrphan(t *testing.T) {
	const child = "HOLDFAST_TEST_ORPHAN"
	if os.Getenv(child) != "" {
		r, p := StartRedis(t), StartPostgres(t)
		r.Pause()
		p.Pause()
		fmt.Println("\n"+child, r.cmd.Process.Pid, p.cmd.Process.Pid, strings.Trim(fmt.Sprint(family(t, p)), "[]"))
		select {}
	}
	dir := filepath.Join(t.TempDir(), "tmp") // it has no time to clean up
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := plainAccount(t, "postgres").own(dir); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestOrphan$")
	cmd.Env = append(os.Environ(), child+"=1", "TMPDIR="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	text, lines := "", bufio.NewScanner(out)
	for text == "" && lines.Scan() {
		if line, ok := strings.CutPrefix(lines.Text(), child+" "); ok {
			text = line
		}
	}
	cmd.Process.Kill()
	cmd.Wait()
	if text == "" {
		t.Fatal("the child started no server")
	}
	for _, field := range strings.Fields(text) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		if err := awaitState(pid, "Z"); err != nil {
			t.Error(err)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, "*", "*", "data"))
	if err != nil || len(left) != 1 {
		t.Fatalf("the child left the databases %q, %v", left, err)
	}
	(&Postgres{data: left[0]}).forget()
}
