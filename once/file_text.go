package once

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"time"

	"github.com/holdfast-go/holdfast/internal/newer"
)

// A fileText is the content of a record's file.
type fileText struct {
	Format      int64     `json:"format"`
	Key         string    `json:"key"`
	State       State     `json:"state"` // 1 begun, 2 done, 0 released
	Token       uint64    `json:"token,string"`
	Fingerprint []byte    `json:"fingerprint,omitempty"`
	Result      []byte    `json:"result,omitempty"`
	Until       time.Time `json:"until"`
}

// fileFormat is the version of a record's file. A later format may change every field but
// format.
const fileFormat = 1

func readKept(path string) (key string, k kept, err error) {
	file, err := openFile(path, false)
	if err != nil {
		return "", kept{}, err
	}
	defer file.Close()
	text, err := io.ReadAll(file)
	if err != nil {
		return "", kept{}, err
	}
	var t fileText
	err = json.Unmarshal(text, &t)
	if t.Format > fileFormat { // Other fields may have other types.
		return "", kept{}, &fs.PathError{Op: "read", Path: path, Err: newer.Check(t.Key, t.Format, fileFormat, newer.Stays)}
	}
	if err != nil {
		return "", kept{}, damaged(path, err)
	}
	if t.Format != fileFormat || t.State > Done || t.Token == 0 {
		return "", kept{}, damaged(path, fmt.Errorf("it has format %d, state %d and token %d", t.Format, t.State, t.Token))
	}
	return t.Key, kept{Record{t.State, t.Token, string(t.Fingerprint), t.Result}, t.Until}, nil
}

func damaged(path string, err error) error {
	return fmt.Errorf("%s is not a record that this version can read; remove it if nobody needs it: %w", path, err)
}

// writeKept writes a file that must not exist, and returns once the file is synced to
// disk.
func writeKept(path, key string, k kept) error {
	text, err := json.Marshal(fileText{fileFormat, key, k.State, k.Token, []byte(k.Fingerprint), k.Result, k.until.UTC()})
	if err != nil {
		return err
	}
	file, err := createFile(path)
	if err != nil {
		return err
	}
	_, err = file.Write(append(text, '\n'))
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Chtimes(path, k.until, k.until)
}

// syncDir syncs the names in a folder to disk.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // Windows has no such call.
	}
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
