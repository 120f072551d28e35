package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// FuzzJSON writes arbitrary text as JSON: a terminal finds nothing to obey, and a program
// reads the same text.
func FuzzJSON(f *testing.F) {
	for _, text := range []string{"", "plain", "\u009b31m\u007f\u202e", "\U000e0001😀\ufeff\u00a0", "\x1b]0;\a\n\\", "\ue000\u200d\u2028"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			t.Skip("no store keeps it")
		}
		var b bytes.Buffer
		if err := WriteJSON(&b, text); err != nil {
			t.Fatal(err)
		}
		if i := strings.IndexFunc(b.String(), func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("%q has %q", b.String(), b.String()[i:])
		}
		var back string
		if err := json.Unmarshal(b.Bytes(), &back); err != nil || back != text {
			t.Errorf("%q is read as %q: %v", text, back, err)
		}
	})
}
