// Package sharedkey signs requests to Azure Blob Storage with the key of an account. The algorithm
// is "Authorize with Shared Key" of the REST API, in the form for the Blob service since version
// 2015-02-21.
package sharedkey

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// A Key is the key of an account.
type Key struct {
	account string
	secret  []byte
}

// New returns the key that Azure shows as base64. The error does not show the key.
func New(account, key string) (Key, error) {
	secret, err := base64.StdEncoding.DecodeString(key)
	if err != nil || len(secret) == 0 {
		return Key{}, errors.New("the key of the account is not base64")
	}
	return Key{account, secret}, nil
}

// signed are the headers of a request whose values are signed, besides those of Azure.
var signed = []string{
	"Content-Encoding", "Content-Language", "Content-Length", "Content-MD5", "Content-Type", "Date",
	"If-Modified-Since", "If-Match", "If-None-Match", "If-Unmodified-Since", "Range",
}

// Authorize sets the date and the signature of a request. The length of the body is known, and no
// header of the request changes after Authorize.
func (k Key) Authorize(r *http.Request) {
	r.Header.Set("x-ms-date", time.Now().UTC().Format(http.TimeFormat))
	r.Header.Set("Authorization", "SharedKey "+k.account+":"+k.Sign(k.text(r)))
}

// Sign returns the signature of a text as base64.
func (k Key) Sign(text string) string {
	sum := hmac.New(sha256.New, k.secret)
	sum.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(sum.Sum(nil))
}

// text is what the signature of a request signs.
func (k Key) text(r *http.Request) string {
	lines := []string{r.Method}
	for _, name := range signed {
		lines = append(lines, r.Header.Get(name))
	}
	if lines[3] == "0" {
		lines[3] = ""
	}
	var own []string
	for name, values := range r.Header {
		if name = strings.ToLower(name); strings.HasPrefix(name, "x-ms-") {
			own = append(own, name+":"+strings.Join(values, ","))
		}
	}
	slices.Sort(own)
	return strings.Join(append(append(lines, own...), k.resource(r.URL)), "\n")
}

// resource names the account, the path and the parameters of a request.
func (k Key) resource(u *url.URL) string {
	text := "/" + k.account + u.EscapedPath()
	query := u.Query()
	var names []string
	for name := range query {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		values := slices.Sorted(slices.Values(query[name]))
		text += "\n" + strings.ToLower(name) + ":" + strings.Join(values, ",")
	}
	return text
}
