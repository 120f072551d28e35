package httplock

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// MaxForm is how many bytes of a body [Form] reads to find the field.
const MaxForm = 1 << 20

// Form takes the key from a field of a form, such as a hidden token that the page was
// served with. The field is in the body, or in the query, as for [http.Request.FormValue].
// Requests without the field have no key: [Required] refuses them.
//
// Form reads an urlencoded body whole, and a multipart body up to the field, so the field
// should stand first. The handler can read the body again from the beginning. If the field
// is not found within [MaxForm] bytes, the request gets 413.
//
// If the handler could read the request in another way than Form, the request gets 400:
//
//   - body and query have different values of the field;
//   - the form, the query or the Content-Type is malformed;
//   - there are two Content-Types;
//   - the form is compressed.
//
// For compressed forms, put a middleware that uncompresses bodies and removes
// Content-Encoding around the guard. Only in a multipart form, further fields of the name
// may have other values: the first field counts, also for FormValue.
func Form(field string) KeyFunc {
	kind := "form/" + field + "/"
	return func(r *http.Request) (string, error) {
		values, err := formValues(r, field)
		if err != nil || len(values) == 0 {
			return "", err
		}
		if slices.ContainsFunc(values, func(v string) bool { return v != values[0] }) {
			return "", badRequest("The field of the form that names this request has several values.")
		}
		return named(kind, values[0]), nil
	}
}

// formValues returns every value that a handler may read from the field.
func formValues(r *http.Request, field string) ([]string, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, badRequest("The query of this request is malformed.")
	}
	parsed := r.PostForm[field] // by an earlier middleware, which may have read the body
	body, err := bodyValues(r, field)
	return slices.Concat(query[field], parsed, body), err
}

// bodyValues returns the values in a body that has not been parsed yet.
func bodyValues(r *http.Request, field string) ([]string, error) {
	types := r.Header.Values("Content-Type")
	if r.Body == nil || len(types) == 0 || len(types) == 1 && types[0] == "" {
		return nil, nil // no form
	}
	// ParseForm reads a form even if the parameters of the type are malformed.
	contentType, params, err := mime.ParseMediaType(types[0])
	if err != nil || len(types) > 1 {
		return nil, badRequest("The Content-Type of this request is malformed, or not the only one.")
	}
	urlencoded := contentType == "application/x-www-form-urlencoded"
	multiparts := contentType == "multipart/form-data" || contentType == "multipart/mixed" // MultipartReader takes both types
	coding := r.Header.Get("Content-Encoding")
	switch {
	case !urlencoded && !multiparts:
		return nil, nil
	case coding != "" && !strings.EqualFold(coding, "identity"):
		return nil, badRequest("The form in the body must not be compressed.")
	case urlencoded && r.PostForm != nil && slices.Contains(withForm, r.Method):
		return nil, nil // already parsed
	case urlencoded:
		return urlencodedValues(r, field)
	case r.MultipartForm != nil:
		return nil, r.ParseMultipartForm(MaxForm) // fails after MultipartReader
	}
	return multipartValues(r, field, params["boundary"])
}

// withForm are the methods whose bodies ParseForm reads. For other methods ParseForm sets
// PostForm, too.
var withForm = []string{http.MethodPost, http.MethodPut, http.MethodPatch}

func urlencodedValues(r *http.Request, field string) ([]string, error) {
	body, err := readBody(r, MaxForm)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, badRequest("The form in the body is malformed.")
	}
	return form[field], nil
}

// readBody reads the body and makes it readable again. The error is a Problem.
func readBody(r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	if err != nil {
		return nil, unreadable(err)
	}
	if int64(len(body)) > limit {
		return nil, tooLarge(limit)
	}
	r.Body = replay{bytes.NewReader(body), r.Body}
	return body, nil
}

// A replay is a body that has been read in part.
type replay struct {
	io.Reader
	io.Closer
}

// multipartValues returns the first value.
func multipartValues(r *http.Request, field, boundary string) ([]string, error) {
	if boundary == "" {
		return nil, badRequest("The multipart form in the body has no boundary.")
	}
	var seen bytes.Buffer
	limited := &io.LimitedReader{R: r.Body, N: MaxForm}
	parts := multipart.NewReader(io.TeeReader(limited, &seen), boundary)
	values, err := findPart(parts, field)
	r.Body = replay{io.MultiReader(&seen, r.Body), r.Body}
	switch {
	case err == nil:
		return values, nil
	case limited.N <= 0:
		return nil, tooLarge(MaxForm)
	}
	return nil, unreadable(err)
}

func findPart(parts *multipart.Reader, field string) ([]string, error) {
	for {
		part, err := parts.NextPart()
		if err == io.EOF {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if part.FormName() == field && part.FileName() == "" {
			value, err := io.ReadAll(part)
			return []string{string(value)}, err
		}
	}
}

func tooLarge(limit int64) *Problem {
	return &Problem{
		Status: http.StatusRequestEntityTooLarge,
		Detail: fmt.Sprintf("The body of this request is larger than the %d bytes that are read here.", limit),
	}
}

// unreadable is the Problem of a body that ended early, exceeded the limit of another
// middleware, or is no form.
func unreadable(err error) *Problem {
	p := ProblemOf(err)
	if p.Status != http.StatusRequestEntityTooLarge {
		p = badRequest("The body of this request could not be read.")
	}
	p.Err = err
	return p
}
