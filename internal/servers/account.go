package servers

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
)

// An account is the user that runs a server. nil is the user that runs the tests.
type account struct{ uid, gid int }

// plainAccount returns an account for servers that refuse to run as root: the first name
// that the system knows.
func plainAccount(tb TB, names ...string) *account {
	tb.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	for _, name := range append(names, "nobody") {
		if u, err := user.Lookup(name); err == nil {
			a := &account{}
			if _, err := fmt.Sscan(u.Uid+" "+u.Gid, &a.uid, &a.gid); err == nil {
				return a
			}
		}
	}
	tb.Fatalf("root runs the tests, and there is no user nobody to run a server as: run them as a plain user")
	return nil
}

// own gives a file or folder to the account. own also lets the account pass the folders of
// the test on the way there.
func (a *account) own(path string) error {
	if a == nil {
		return nil
	}
	for dir := filepath.Dir(path); temporary(dir); dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if err := os.Chmod(dir, info.Mode().Perm()|0o111); err != nil {
			return err
		}
	}
	return os.Chown(path, a.uid, a.gid)
}

// temporary reports whether a folder is in one of the folders in which tests make theirs.
func temporary(dir string) bool {
	for _, root := range []string{os.TempDir(), os.Getenv("GOTMPDIR")} {
		if root != "" && strings.HasPrefix(dir, filepath.Clean(root)+string(filepath.Separator)) {
			return true
		}
	}
	return false
}

// write writes a file for a server of the account.
func (a *account) write(path string, lines ...string) error {
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return err
	}
	return a.own(path)
}

// tool runs a program that ends by itself, as the account, in a folder that the account
// may enter.
func (a *account) tool(dir, path string, args ...string) error {
	return a.feed("", dir, path, args...)
}

// feed is tool for a program that reads input.
func (a *account) feed(input, dir, path string, args ...string) error {
	cmd := exec.Command(path, args...)
	cmd.Dir = dir
	a.run(cmd)
	_, err := query(cmd, input)
	return err
}
