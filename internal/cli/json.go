package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// WriteJSON writes a value as JSON. Unprintable characters, which only stand in strings,
// are escaped, so that no terminal obeys them.
func WriteJSON(w io.Writer, value any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(value); err != nil {
		return err
	}
	var safe []byte
	for _, r := range b.String() {
		switch {
		case r == '\n' || !unprintable(r):
			safe = utf8.AppendRune(safe, r)
		default:
			for _, unit := range utf16.Encode([]rune{r}) {
				safe = fmt.Appendf(safe, `\u%04x`, unit)
			}
		}
	}
	_, err := w.Write(safe)
	return err
}
