// Package overlay writes the file for the flag -overlay of the go command: a list of files
// with replaced texts. The original files stay unchanged.
package overlay

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// An Edit replaces a text of a file. The old text stands in the file exactly once.
type Edit struct{ File, Old, New string }

// In returns the edits with their files in a folder.
func In(folder string, edits []Edit) []Edit {
	all := make([]Edit, len(edits))
	for i, e := range edits {
		e.File = filepath.Join(folder, filepath.FromSlash(e.File))
		all[i] = e
	}
	return all
}

// Write writes the edited files into a folder, and returns the path of the list for
// -overlay. Write fails, naming file and text, if an old text does not stand in its file
// exactly once. Later edits of a file see the results of earlier edits.
func Write(folder string, edits []Edit) (list string, err error) {
	texts := make(map[string]string)
	for _, e := range edits {
		text, ok := texts[e.File]
		if !ok {
			file, err := os.ReadFile(e.File)
			if err != nil {
				return "", err
			}
			text = string(file)
		}
		if n := strings.Count(text, e.Old); n != 1 {
			return "", fmt.Errorf("this text has to stand once in %s, and stands there %d times:\n%s", e.File, n, e.Old)
		}
		texts[e.File] = strings.Replace(text, e.Old, e.New, 1)
	}
	replace := make(map[string]string)
	for file, text := range texts {
		// The name of the folder tells files of one name apart.
		edited := filepath.Join(folder, filepath.Base(filepath.Dir(file))+"-"+filepath.Base(file))
		if err := os.WriteFile(edited, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[file] = edited
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	list = filepath.Join(folder, "overlay.json")
	return list, os.WriteFile(list, data, 0o600)
}
