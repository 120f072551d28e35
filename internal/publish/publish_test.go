package publish_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/internal/publish"
)

// variable makes a process of this test a command.
const variable = "HOLDFAST_PUBLISH_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(variable) != "" {
		publish.Main("command", execute)
		return
	}
	os.Exit(m.Run())
}

// execute ends as the argument says.
func execute(ctx context.Context, args []string, out io.Writer) error {
	switch args[0] {
	case "help":
		return fmt.Errorf("no such flag: %w", flag.ErrHelp)
	case "fail":
		return errors.New("a store is broken")
	case "wait":
		fmt.Fprintln(out, "ready")
		<-ctx.Done()
		return ctx.Err()
	}
	fmt.Fprintln(out, "all is well")
	return nil
}

func command(t *testing.T, arg string) (cmd *exec.Cmd, complaint *bytes.Buffer) {
	t.Helper()
	complaint = new(bytes.Buffer)
	cmd = exec.CommandContext(t.Context(), os.Args[0], arg)
	cmd.Env, cmd.Stderr = append(os.Environ(), variable+"=1"), complaint
	return cmd, complaint
}

func TestExitCodes(t *testing.T) {
	for _, test := range []struct {
		arg, out, complaint string
		code                int
	}{
		{"work", "all is well\n", "", 0},
		{"fail", "", "command: a store is broken\n", 1},
		{"help", "", "", 2},
	} {
		cmd, complaint := command(t, test.arg)
		out, err := cmd.Output()
		if code := cmd.ProcessState.ExitCode(); code != test.code || string(out) != test.out || complaint.String() != test.complaint {
			t.Errorf("%s: code %d (%v), %q, %q; want %d, %q, %q", test.arg, code, err, out, complaint, test.code, test.out, test.complaint)
		}
	}
}

// A signal ends the context, so the command can clean up.
func TestSignals(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot send signals on Windows")
	}
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		cmd, complaint := command(t, "wait")
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
			t.Errorf("the command says %q, %v", line, err)
		}
		if err := cmd.Process.Signal(s); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 1 || complaint.String() != "command: context canceled\n" {
			t.Errorf("%v: %v, %q", s, err, complaint)
		}
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", -999: "-999", -12345: "-12,345", 1234567: "1,234,567"} {
		if got := publish.Thousands(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

func TestSavable(t *testing.T) {
	folder := t.TempDir()
	if err := publish.Savable(folder, true, "table.md", "picture.svg"); err != nil {
		t.Errorf("a part in an empty folder: %v", err)
	}
	if err := os.WriteFile(filepath.Join(folder, "picture.svg"), []byte("all"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := publish.Savable(folder, true, "table.md", "picture.svg"); err == nil || !strings.Contains(err.Error(), "picture.svg exists") {
		t.Errorf("a part in place of the whole: %v", err)
	}
	if err := publish.Savable(folder, false, "table.md", "picture.svg"); err != nil {
		t.Errorf("the whole again: %v", err)
	}
	if err := publish.Savable(filepath.Join(folder, "none"), false); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that does not exist: %v", err)
	}
}
