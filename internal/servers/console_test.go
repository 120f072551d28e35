package servers

import (
	"bufio"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// A console is an open session of psql or the like.
type console struct {
	t     *testing.T
	input io.Writer
	lines <-chan string // closed at the end
}

func openConsole(t *testing.T, cmd *exec.Cmd) *console {
	t.Helper()
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, end := io.Pipe()
	cmd.Stdout, cmd.Stderr = end, end
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(output); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		end.Close()
	})
	return &console{t, input, lines}
}

// openPsql opens a session, perhaps through a proxy or a pooler.
func openPsql(t *testing.T, p *Postgres, addr string) *console {
	t.Helper()
	return openConsole(t, p.psql(strings.Replace(p.URL(), p.Addr(), addr, 1)))
}

func (c *console) send(sql string) {
	c.t.Helper()
	if _, err := io.WriteString(c.input, sql+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// wantLine wants the next line to hold a text.
func (c *console) wantLine(want string) {
	c.t.Helper()
	if got := c.receive(); !strings.Contains(got, want) {
		c.t.Errorf("the console says %q, want %q", got, want)
	}
}

// wantLoss wants the news that the connection is lost, of which there are
// several wordings.
func (c *console) wantLoss() {
	c.t.Helper()
	if got := c.receive(); !strings.Contains(strings.ToLower(got), "connection") {
		c.t.Errorf("the console says %q, want the loss of its connection", got)
	}
}

// receive returns the next line, which comes within a generous time.
func (c *console) receive() string {
	c.t.Helper()
	select {
	case got, open := <-c.lines:
		if !open {
			c.t.Error("the console has ended")
		}
		return got
	case <-time.After(patience):
		c.t.Error("the console is silent")
		return ""
	}
}

// wantSilence cannot fail on a slow machine, as that of a session.
func (c *console) wantSilence() {
	c.t.Helper()
	select {
	case got := <-c.lines:
		c.t.Errorf("the console says %q, want silence", got)
	case <-time.After(50 * time.Millisecond):
	}
}
