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

// Params reads the query parameters of a store URL strictly. Read each one
// that the store knows, then ask Err: it reports values that do not parse,
// parameters given twice, and parameters that nobody has read.
type Params struct {
	values url.Values
	known  []string
	errs   []error
}

// NewParams returns the query parameters of u.
func NewParams(u *url.URL) *Params {
	p := &Params{}
	var err error
	if p.values, err = url.ParseQuery(u.RawQuery); err != nil {
		p.errs = append(p.errs, fmt.Errorf("URL parameters: %w", err))
	}
	return p
}

// String returns the named parameter, or otherwise if it is absent.
func (p *Params) String(name, otherwise string) string {
	p.known = append(p.known, name)
	if !p.values.Has(name) {
		return otherwise
	}
	return p.values.Get(name)
}

// OneOf returns the named parameter, which must be one of the choices; the
// first choice is the default.
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

// Parse returns the named parameter as parser reads it; want completes the
// sentence "is not ..." for a value that parser rejects.
func Parse[T any](p *Params, name string, otherwise T, want string, parser func(string) (T, error)) T {
	text := p.String(name, "")
	if !p.values.Has(name) {
		return otherwise
	}
	value, err := parser(text)
	if err != nil {
		p.errs = append(p.errs, fmt.Errorf("URL parameter %s=%q is not %s", name, text, want))
		return otherwise
	}
	return value
}

// Err returns what was wrong with the parameters, as an error that matches
// [ErrURL], nil if nothing was.
func (p *Params) Err() error {
	errs := slices.Clone(p.errs)
	for _, name := range slices.Sorted(maps.Keys(p.values)) {
		switch values := p.values[name]; {
		case !slices.Contains(p.known, name):
			errs = append(errs, fmt.Errorf("unknown URL parameter %q (known: %s)", name, strings.Join(p.known, ", ")))
		case len(values) > 1:
			errs = append(errs, fmt.Errorf("URL parameter %q is given %d times", name, len(values)))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrURL, errors.Join(errs...))
}
