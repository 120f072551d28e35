package driver

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// Passwords with the characters that end a user, or a URL around them.
var careless = []string{
	"://user:S3cr3t@h", ":///user:S3cr3t@h", "://user:/S3cr3t@h", "://user:12/S3cr3t@h:1", "://user:?S3cr3t@h", "://user:#S3cr3t@h",
	"://user:12?S3cr3t&x@h", "://user:12?wait=1&S3cr3t=@h", "://user:a@S3cr3t/b@h", "://user:a@S3cr3t?wait=b@h", "://user:a@S3cr3t#b@h",
	":user:S3cr3t@h", ":/user:S3cr3t@h/0", "://h/user:S3cr3t@h", "://user:S3cr3t%zz@h", "://user:S3cr3t%2f/x@h", "://us%3Aer%3AS3cr3t@h",
	"://h:S3cr3t@", "://[user:S3cr3t@h", "://user:S3cr3t]@h", "://user:12:S3cr3t:12/x@h", "://user:\x00S3cr3t@h", "://user: S3cr3t @h",
	"://S3cr3t@h", "://S3cr3t:@h", "://h?wait=S3cr3t", "://h?sentinel_password=a&S3cr3t", "://h?sentinel_password=a&S3cr3t=&b", "://h?pwd=a&S3cr3t",
	"://h?wait=%zzS3cr3t", "://h?wait=1;S3cr3t", "://h#S3cr3t", "://?node=redis://u:a&S3cr3t@h",
}

func TestNoSecretsInErrors(t *testing.T) {
	Register("careless", func(_ context.Context, u *url.URL) (Store, error) {
		p := NewParams(u)
		p.Text("sentinel_password", "")
		p.Int("wait", 0, 0, 10)
		return nil, errors.Join(errors.New("this store fails at "+u.Host), p.Err())
	})
	for _, scheme := range []string{"careless", "nonsense", "", "//", "user"} {
		for _, rest := range careless {
			raw := scheme + rest
			if scheme == "user" {
				raw = strings.TrimPrefix(rest, "://") // no scheme at all
			}
			if raw == "S3cr3t:@h" { // what stands before the first colon is a scheme
				continue
			}
			_, err := Open(t.Context(), raw)
			if err == nil || strings.Contains(err.Error(), "S3cr3t") {
				t.Errorf("Open(%q) shows the password: %v", raw, err)
			}
			if u, err := url.Parse(raw); err == nil && strings.Contains(Redact(u), "S3cr3t") {
				t.Errorf("Redact(%q) shows the password: %s", raw, Redact(u))
			}
		}
	}
}

func TestRedact(t *testing.T) {
	for raw, want := range map[string]string{
		"redis://h:6379/2?prefix=x":      "redis://h:6379/2",
		"redis://app:p%40%2F@a:1,b:2":    "redis://app:xxxxx@a:1,b:2",
		"redis://:p@h":                   "redis://:xxxxx@h",
		"redis://p@h":                    "redis://xxxxx@h",
		"redis://u:p/2@h":                "redis://...",
		"file:///C:/Users/x/locks":       "file:///C:/Users/x/locks",
		"file:///home/me@corp/locks":     "file://...",
		"file:locks":                     "file:locks",
		"redlock://?node=redis://u:p@h1": "redlock:",
	} {
		if u, err := url.Parse(raw); err == nil && Redact(u) != want {
			t.Errorf("%s is shown as %s, want %s", raw, Redact(u), want)
		}
	}
}

func TestPathsWithAt(t *testing.T) {
	for raw, right := range map[string]bool{
		"file:///home/me@corp/locks":                         true,
		"file:///C:/Users/me%40corp/locks":                   true,
		"file:me@corp/locks":                                 true,
		"file:///a:b@c":                                      false,
		"file:///a:b%40c":                                    true,
		"redlock://?node=redis://u:p@a:1&node=redis://u:p@b": true,
		"postgres://app@db/x?application_name=me%40corp":     true,
		"postgres://app@db/x?application_name=me@corp":       false,
		"postgres://user%40server:p@server.database.azure/x": true,
		"postgres://user@server:p@server.database.azure/x":   true,
	} {
		if _, err := ParseURL(raw); (err == nil) != right {
			t.Errorf("ParseURL(%q): %v", raw, err)
		}
	}
}

func TestUnknownParameters(t *testing.T) {
	for query, want := range map[string]string{
		"?one=1&wiat=2":          `unknown URL parameter "wiat" (known: one, two)`,
		"?two=1&two=2":           `URL parameter "two" is given 2 times`,
		"?one=x":                 `URL parameter one is not a whole number from 0 to 9`,
		"?one=1&" + "wiat%0A=11": `an unknown URL parameter, which may be a part of a password (known: one, two)`,
	} {
		u, err := url.Parse("x://h" + query)
		if err != nil {
			t.Fatal(err)
		}
		p := NewParams(u)
		p.Int("one", 0, 0, 9)
		p.Text("two", "")
		if err := p.Err(); fmt.Sprint(err) != "wrong store URL: "+want {
			t.Errorf("%s: %v, want %s", query, err, want)
		}
	}
}
