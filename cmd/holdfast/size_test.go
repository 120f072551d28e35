package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestSize builds the command as a release does, and looks how large the file is. If the
// program calls methods by names that are not known before it runs, as text/template
// does, the linker keeps every exported method, and the size doubles.
func TestSize(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the command")
	}
	program := filepath.Join(t.TempDir(), "holdfast")
	cmd := exec.Command("go", "build", "-trimpath", "-tags=grpcnotrace", "-ldflags=-s -w", "-o", program, ".")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	if most := 36.0; float64(info.Size())/1e6 >= most {
		t.Errorf("the program has %.1f MB, want less than %g: look for the cause by -ldflags=-dumpdep and ReflectMethod", float64(info.Size())/1e6, most)
	}
}
