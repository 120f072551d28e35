package sharedkey

import (
	"net/http"
	"strings"
	"testing"
)

// The text of two examples in "Authorize with Shared Key" of the REST API of Azure Storage.
func TestText(t *testing.T) {
	k, err := New("myaccount", "bW9vbmxpZ2h0")
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]string{
		"http://myaccount.blob.core.windows.net/mycontainer?restype=container&comp=metadata": "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\nx-ms-version:2015-02-21\n" +
			"/myaccount/mycontainer\ncomp:metadata\nrestype:container",
		"http://127.0.0.1:10000/myaccount/mycontainer/a%2520b?timeout=20": "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\nx-ms-version:2015-02-21\n" +
			"/myaccount/myaccount/mycontainer/a%2520b\ntimeout:20",
	} {
		r, err := http.NewRequest(http.MethodGet, at, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("x-ms-version", "2015-02-21")
		r.Header.Set("x-ms-date", "Fri, 26 Jun 2015 23:39:12 GMT")
		r.Header.Set("Content-Length", "0")
		if got := k.text(r); got != want {
			t.Errorf("%s:\n%q, want\n%q", at, got, want)
		}
	}
}

func TestKeyThatIsNoBase64(t *testing.T) {
	for _, key := range []string{"", "moonlight!"} {
		if _, err := New("a", key); err == nil || strings.Contains(err.Error(), "moonlight") {
			t.Errorf("%q: %v, want an error without the key", key, err)
		}
	}
}
