package workers

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
)

func TestMain(m *testing.M) {
	Main(func(args []string) error {
		if args[0] == "fail" {
			return errors.New("an error for the eyes, as the test wants it")
		}
		_, err := io.Copy(os.Stdout, os.Stdin)
		return err
	})
	os.Exit(m.Run())
}

func TestWorker(t *testing.T) {
	w := Start(t, "echo")
	if _, err := fmt.Fprintln(w.In, "hello"); err != nil {
		t.Fatal(err)
	}
	if err := w.In.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := w.Wait(); err != nil {
			t.Error(err)
		}
	}
	text, err := io.ReadAll(w.Out) // what it had written is there when it has gone
	if string(text) != "hello\n" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
}

func TestFailure(t *testing.T) {
	var exit *exec.ExitError
	if err := Start(t, "fail").Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("got %v, want exit code 1", err)
	}
}

// A worker ends with its test.
func TestEndsWithTest(t *testing.T) {
	var w *Worker
	t.Run("inner", func(t *testing.T) {
		w = Start(t, "echo")
		_, _ = fmt.Fprintln(w.In, "hello")
		if line, err := bufio.NewReader(w.Out).ReadString('\n'); line != "hello\n" {
			t.Errorf("got %q, %v", line, err)
		}
	})
	if w.err == nil {
		t.Error("the worker has not been killed")
	}
}
