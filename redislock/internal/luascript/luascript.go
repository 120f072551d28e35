// Package luascript reads Lua scripts for Redis and computes their SHA-1 names.
package luascript

import (
	"crypto/sha1" //nolint:gosec // the name that Redis gives a script
	"embed"
	"encoding/hex"
	"strings"
)

// include and the name of a file, on a line, stand for the text of that file. Code that few
// calls need comes late in a script, so that most calls do not even define it.
const include = "-- include "

// Load returns the text of the script lua/name.lua, with all included files, and the
// SHA-1 by which Redis knows the text.
func Load(files embed.FS, name string) (text, sha string) {
	text = read(files, name)
	sum := sha1.Sum([]byte(text))
	return text, hex.EncodeToString(sum[:])
}

func read(files embed.FS, name string) string {
	text, err := files.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err) // The file was there when the program was compiled.
	}
	var whole strings.Builder
	for line := range strings.Lines(string(text)) {
		if file, ok := strings.CutPrefix(line, include); ok {
			line = read(files, strings.TrimSuffix(file, "\n")) + "\n"
		}
		whole.WriteString(line)
	}
	return whole.String()
}

// IsUnknown reports whether the server does not know the script: the server is new, has
// restarted or was told to forget its scripts.
func IsUnknown(err error) bool { return err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") }
