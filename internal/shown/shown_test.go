package shown

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"a\n":                         `"a\n"`,
		strings.Repeat("t", 128):      `"` + strings.Repeat("t", 128) + `"`,
		strings.Repeat("t", 129):      `"` + strings.Repeat("t", 128) + `"...`,
		strings.Repeat("\u00fc", 129): `"` + strings.Repeat("\u00fc", 128) + `"...`,
	} {
		if got := Text(text); got != want {
			t.Errorf("Text of %d bytes is %s, want %s", len(text), got, want)
		}
	}
}

func TestKey(t *testing.T) {
	long := strings.Repeat("k", 513)
	for key, want := range map[string]string{
		"a\n":      `"a\n"`,
		long[:512]: `"` + long[:512] + `"`,
		long:       `"` + long[:64] + `"... (513 bytes)`,
	} {
		if got := Key(key); got != want {
			t.Errorf("Key of %d bytes is %s, want %s", len(key), got, want)
		}
	}
}

func TestSeconds(t *testing.T) {
	for ms := range 10_000 {
		d := time.Duration(ms)*time.Millisecond + 499*time.Microsecond
		text, err := json.Marshal(Seconds(d))
		_, decimals, _ := strings.Cut(string(text), ".")
		if back, bad := time.ParseDuration(string(text) + "s"); err != nil || bad != nil || len(decimals) > 3 || back != d.Truncate(time.Millisecond) {
			t.Fatalf("%v is %s, %v", d, text, err)
		}
	}
}
