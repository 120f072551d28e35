package driver

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Params reads the query parameters of a store URL strictly. Read every parameter known
// to the store, then call Err. Err reports values that do not parse, parameters given
// twice, and parameters that nobody has read. Errors show no value, because a value may be
// a secret.
type Params struct {
	query  string
	values url.Values
	known  []string
	many   []string // of known, the parameters that may be given several times
	errs   []error
}

// NewParams returns the query parameters of u.
func NewParams(u *url.URL) *Params {
	p := &Params{query: u.RawQuery}
	var err error
	if p.values, err = url.ParseQuery(u.RawQuery); err != nil {
		p.errs = append(p.errs, errors.New("the URL parameters do not parse: write % as %25, & as %26 and ; as %3B"))
	}
	return p
}

// Text returns the named parameter, or otherwise if the parameter is absent.
func (p *Params) Text(name, otherwise string) string {
	p.known = append(p.known, name)
	if !p.values.Has(name) {
		return otherwise
	}
	return p.values.Get(name)
}

// Strings returns the values of a parameter that may be given several times.
func (p *Params) Strings(name string) []string {
	p.known, p.many = append(p.known, name), append(p.many, name)
	return p.values[name]
}

// Ignore accepts parameters for other clients of the same engine, so that the clients can
// share a URL. The parameters mean nothing to the store.
func (p *Params) Ignore(names ...string) { p.known = append(p.known, names...) }

// OneOf returns the named parameter, which must be one of the choices. The first choice
// is the default.
func (p *Params) OneOf(name string, choices ...string) string {
	return Parse(p, name, choices[0], "one of "+strings.Join(choices, ", "), func(s string) (string, error) {
		if !slices.Contains(choices, s) {
			return "", strconv.ErrSyntax
		}
		return s, nil
	})
}

// Bool returns the named parameter: true, false, 1 or 0.
func (p *Params) Bool(name string, otherwise bool) bool {
	return Parse(p, name, otherwise, "true or false", strconv.ParseBool)
}

// Int returns the named parameter, which must lie between low and high.
func (p *Params) Int(name string, otherwise, low, high int) int {
	want := fmt.Sprintf("a whole number from %d to %d", low, high)
	return Parse(p, name, otherwise, want, func(s string) (int, error) {
		n, err := strconv.Atoi(s)
		if err == nil && (n < low || n > high) {
			err = strconv.ErrRange
		}
		return n, err
	})
}

// Duration returns the named parameter, such as 1.5s, which must lie between
// low and high.
func (p *Params) Duration(name string, otherwise, low, high time.Duration) time.Duration {
	want := fmt.Sprintf("a duration from %v to %v", low, high)
	return Parse(p, name, otherwise, want, func(s string) (time.Duration, error) {
		d, err := time.ParseDuration(s)
		if err == nil && (d < low || d > high) {
			err = strconv.ErrRange
		}
		return d, err
	})
}

// Parse returns the named parameter as parsed by parser. want completes the sentence "is
// not ..." for a value that parser rejects.
func Parse[T any](p *Params, name string, otherwise T, want string, parser func(string) (T, error)) T {
	text := p.Text(name, "")
	if !p.values.Has(name) {
		return otherwise
	}
	value, err := parser(text)
	if err != nil {
		p.errs = append(p.errs, fmt.Errorf("URL parameter %s is not %s", name, want))
		return otherwise
	}
	return value
}

// Err returns what is wrong with the parameters, as an error that matches [ErrURL], or nil.
func (p *Params) Err() error {
	errs := slices.Clone(p.errs)
	for _, name := range slices.Sorted(maps.Keys(p.values)) {
		if n := len(p.values[name]); n > 1 && slices.Contains(p.known, name) && !slices.Contains(p.many, name) {
			errs = append(errs, fmt.Errorf("URL parameter %q is given %d times", name, n))
		}
	}
	if unknown := p.unknown(); unknown != "" {
		errs = append(errs, fmt.Errorf("%s (known: %s)", unknown, strings.Join(p.known, ", ")))
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrURL, errors.Join(errs...))
}

// unknown describes the parameters that nobody has read, by the name of the first; "" if
// there are no such parameters. A name that may be part of a password is not shown.
// Text after a password may belong to the password, if an & in it should have been written
// %26. The same holds for text after a parameter of unknown meaning.
func (p *Params) unknown() string {
	var first string
	shown := !strings.Contains(p.query, "@")
	for pair := range strings.SplitSeq(p.query, "&") {
		raw, _, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(raw)
		switch {
		case err != nil || !p.values.Has(name):
		case !slices.Contains(p.known, name):
			if first != "" {
				continue
			}
			if first = "an unknown URL parameter, which may be a part of a password"; shown && word(name) {
				first = fmt.Sprintf("unknown URL parameter %q", name)
			}
		case strings.Contains(name, "pass"):
			shown = false
		}
	}
	return first
}

// word reports whether a name is a possible parameter name.
func word(name string) bool {
	return len(name) <= 64 && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && r != '-' && r != '.' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}
