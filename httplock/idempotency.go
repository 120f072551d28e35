package httplock

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"mime"
	"net/http"
	"strings"
)

// IdempotencyHeader is what clients send the key of a request in, as the IETF draft
// "The Idempotency-Key HTTP Header Field" has it.
const IdempotencyHeader = "Idempotency-Key"

// maxIdempotencyKey is enough for two hashes in hexadecimal.
const maxIdempotencyKey = 255

// IdempotencyKey is the key in the Idempotency-Key header, "" without it. It is a
// string in quotes, as the draft says, of up to 255 characters. Since many clients
// leave the quotes out, they may be missing around what has no spaces, quotes,
// commas, semicolons or backslashes; it is the same key then. Anything else gets 400.
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

// unquote reads a string of RFC 9651 and ignores its parameters, or takes a bare
// word as it is.
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

// payload is what a repeat must have in common with the first request.
func payload(r *http.Request, body []byte) string {
	contentType, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if boundary := params["boundary"]; err == nil && contentType == "multipart/form-data" && boundary != "" {
		body = bytes.ReplaceAll(body, []byte(boundary), nil)
	}
	hash := sha256.New()
	fmt.Fprintf(hash, "%s %s\n", r.Method, r.URL.RequestURI())
	hash.Write(body)
	return string(hash.Sum(nil))
}

// digest makes a fingerprint of any length fit.
func digest(fingerprint string) string {
	sum := sha256.Sum256([]byte(fingerprint))
	return hex.EncodeToString(sum[:])
}
