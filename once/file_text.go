package once

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"
)

// A fileText is the content of a record's file.
type fileText struct {
	Version     int       `json:"version"`
	Key         string    `json:"key"`
	State       State     `json:"state"` // 1 begun, 2 done, 0 released
	Token       uint64    `json:"token,string"`
	Fingerprint []byte    `json:"fingerprint,omitempty"`
	Result      []byte    `json:"result,omitempty"`
	Until       time.Time `json:"until"`
}

const fileVersion = 1

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
	if err := json.Unmarshal(text, &t); err != nil {
		return "", kept{}, damaged(path, err)
	}
	if t.Version != fileVersion || t.State > Done || t.Token == 0 {
		return "", kept{}, damaged(path, fmt.Errorf("it has version %d, state %d and token %d", t.Version, t.State, t.Token))
	}
	return t.Key, kept{Record{t.State, t.Token, string(t.Fingerprint), t.Result}, t.Until}, nil
}

func damaged(path string, err error) error {
	return fmt.Errorf("%s is not a record that this version can read; remove it if nobody needs it: %w", path, err)
}

// writeKept writes a file that must not exist, and returns once the file is synced to
// disk.
func writeKept(path, key string, k kept) error {
	text, err := json.Marshal(fileText{fileVersion, key, k.State, k.Token, []byte(k.Fingerprint), k.Result, k.until.UTC()})
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
