package httplock

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
)

// IdempotencyHeader is the header in which clients send the key of a request, as in the
// IETF draft "The Idempotency-Key HTTP Header Field".
const IdempotencyHeader = "Idempotency-Key"

// maxIdempotencyKey is enough for two hashes in hexadecimal.
const maxIdempotencyKey = 255

// IdempotencyKey takes the key from the Idempotency-Key header; without the header the key
// is "". The value is a string in quotes, as in the draft, of up to 255 characters. Since
// many clients leave the quotes out, a value without spaces, quotes, commas, semicolons or
// backslashes may go without quotes and is the same key. Every other value gets 400.
func IdempotencyKey(r *http.Request) (string, error) {
	values := r.Header.Values(IdempotencyHeader)
	if len(values) == 0 {
		return "", nil
	}
	key, ok := "", len(values) == 1
	if ok {
		key, ok = unquote(strings.Trim(values[0], " "))
	}
	if !ok || key == "" || len(key) > maxIdempotencyKey {
		return "", badRequest(IdempotencyHeader + ` must be one string in quotes, of 1 to 255 printable ASCII characters, such as "8e03978e".`)
	}
	return "idempotency/" + key, nil
}

// unquote reads a string of RFC 9651 and ignores its parameters. A bare word is returned
// unchanged.
func unquote(text string) (string, bool) {
	quoted := strings.HasPrefix(text, `"`)
	if quoted {
		text = text[1:]
	}
	var key strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c < ' ' || c > '~' || !quoted && strings.IndexByte(` ",;\`, c) >= 0:
			return "", false
		case c == '"':
			rest := strings.TrimLeft(text[i+1:], " ")
			return key.String(), rest == "" || rest[0] == ';'
		case c == '\\':
			i++
			if i == len(text) || text[i] != '"' && text[i] != '\\' {
				return "", false
			}
			c = text[i]
		}
		key.WriteByte(c)
	}
	return key.String(), !quoted
}

// payload is the default Fingerprint.
func payload(r *http.Request, body []byte) string {
	contentType, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if boundary := params["boundary"]; err == nil && contentType == "multipart/form-data" && boundary != "" {
		body = bytes.ReplaceAll(body, []byte(boundary), nil)
	}
	hash := sha256.New()
	host := strings.ToLower((&url.URL{Host: r.Host}).Hostname()) // the servers of a host may have several ports
	fmt.Fprintf(hash, "%q %q %q %q\n", r.Method, host, target(r), r.URL.RequestURI())
	hash.Write(body)
	return string(hash.Sum(nil))
}

// target returns path and query as the client has sent them. The URL is not enough to
// distinguish routes: [http.StripPrefix] and similar handlers change the URL.
func target(r *http.Request) string {
	u, err := url.ParseRequestURI(r.RequestURI)
	if err != nil {
		return r.RequestURI // "" if no server has read the request
	}
	return u.RequestURI() // without the host that starts a request through a proxy
}

// digest shortens a fingerprint to a fixed length.
func digest(fingerprint string) string {
	sum := sha256.Sum256([]byte(fingerprint))
	return hex.EncodeToString(sum[:])
}
