package servers

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestOrphan kills a test binary. Its server has to go with it, though it was
// paused.
func TestOrphan(t *testing.T) {
	const child = "HOLDFAST_TEST_ORPHAN"
	if os.Getenv(child) != "" {
		r := StartRedis(t)
		r.Pause()
		os.Stdout.WriteString("\n" + child + " " + r.Addr() + "\n")
		select {}
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestOrphan$")
	cmd.Env = append(os.Environ(), child+"=1", "TMPDIR="+t.TempDir()) // it has no time to clean up
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	addr, lines := "", bufio.NewScanner(out)
	for addr == "" && lines.Scan() {
		addr, _ = strings.CutPrefix(lines.Text(), child+" ")
	}
	cmd.Process.Kill()
	cmd.Wait()
	if addr == "" {
		t.Fatal("the child started no server")
	}
	err = await(func() error {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return nil
		}
		return conn.Close()
	}, nil)
	if err != nil {
		t.Error(err)
	}
}
