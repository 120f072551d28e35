package filelock

import (
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/filename"
)

func TestFileName(t *testing.T) {
	tests := []struct{ key, want string }{
		{"plain-key_1", "lock-plain-key_1"},
		{"Account/42", "lock-%41ccount%2f42"},
		{"..", "lock-%2e%2e"},
		{"../../etc/passwd", "lock-%2e%2e%2f%2e%2e%2fetc%2fpasswd"},
		{"a\x00b\nc", "lock-a%00b%0ac"},
		{"100%~", "lock-100%25%7e"},
		{"schön", "lock-sch%c3%b6n"},
		{"nul.txt ", "lock-nul%2etxt%20"},
		{
			strings.Repeat("a", 124),
			"lock-" + strings.Repeat("a", 40) + "~9c1ed60a6337af7d1659339ef95dccb7c91a55b9eaab349341a7f97198eee519",
		},
		{strings.Repeat("a", 123), "lock-" + strings.Repeat("a", 123)},
	}
	for _, test := range tests {
		if got := fileName(test.key); got != test.want {
			t.Errorf("fileName(%q) is %q, want %q", test.key, got, test.want)
		}
	}
}

// FuzzFileName checks that names stay in their directory, are short and lower
// case, and that no two keys share one.
func FuzzFileName(f *testing.F) {
	long := strings.Repeat("k/", 200)
	for _, pair := range [][2]string{
		{"a", "A"}, {"a/b", "a%2fb"}, {"..", "."}, {"", "\x00"}, {"ſ", "s"},
		{long, long + "x"}, {long, strings.ToUpper(long)}, {"a~b", fileName(long)[len(lockPrefix):]},
	} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		name, other := fileName(a), fileName(b)
		if (name == other) != (a == b) {
			t.Errorf("%q and %q are both %q", a, b, name)
		}
		if name != strings.ToLower(name) || len(name) > filename.Max || !strings.HasPrefix(name, lockPrefix) {
			t.Errorf("%q is no good name", name)
		}
		if filepath.Base(name) != name || !filepath.IsLocal(name) || strings.ContainsAny(name, "./\\:\x00") {
			t.Errorf("%q does not stay in its directory", name)
		}
		if !strings.Contains(name, "~") {
			if back, err := url.PathUnescape(name); err != nil || back != lockPrefix+a {
				t.Errorf("%q reads as %q, %v, want the key %q", name, back, err, a)
			}
		}
		if !mayName(fileName(a+b), a) {
			t.Errorf("the name of %q is not found by its prefix %q", a+b, a)
		}
	})
}
