package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// A parser reads the expressions of a statement, for one row, and computes them.
type parser struct {
	words []string
	at    int
	args  []any
	now   int64
}

// split cuts a statement into words.
func split(text string) (words []string) {
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		n := 1
		switch letter := rune(text[0]); {
		case letter == '\'':
			n = strings.Index(text[1:], "'") + 2
		case letter == '"':
			n = strings.Index(text[1:], `"`) + 2
			words, text = append(words, text[1:n-1]), text[n:]
			continue
		case unicode.IsLetter(letter) || unicode.IsDigit(letter) || letter == '$':
			n += strings.IndexFunc(text[1:]+" ", func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' })
		case len(text) > 1 && slices.Contains([]string{"<=", ">=", "<>"}, text[:2]):
			n = 2
		}
		words, text = append(words, text[:n]), text[n:]
	}
	return words
}

func (p *parser) peek() string {
	if p.at < len(p.words) {
		return p.words[p.at]
	}
	return ""
}

func (p *parser) next() string {
	word := p.peek()
	p.at++
	return word
}

func (p *parser) accept(word string) bool {
	if p.peek() != word {
		return false
	}
	p.at++
	return true
}

func (p *parser) skip(words ...string) {
	for _, word := range words {
		if got := p.next(); got != word {
			panic(fmt.Sprintf("sql: %q in place of %q in %q", got, word, p.words))
		}
	}
}

// list reads names up to a bracket.
func (p *parser) list() (names []string) {
	for {
		names = append(names, p.next())
		if !p.accept(",") {
			p.skip(")")
			return names
		}
	}
}

// expression reads what OR stands between.
func (p *parser) expression(row tuple) any {
	value := p.conjunction(row)
	for p.accept("OR") {
		other := p.conjunction(row)
		value = value == true || other == true
	}
	return value
}

func (p *parser) conjunction(row tuple) any {
	value := p.comparison(row)
	for p.accept("AND") {
		other := p.comparison(row)
		value = value == true && other == true
	}
	return value
}

func (p *parser) comparison(row tuple) any {
	left := p.sum(row)
	switch word := p.peek(); word {
	case "=", "<>", "<", "<=", ">", ">=":
		p.at++
		return compare(left, word, p.sum(row))
	case "BETWEEN":
		p.at++
		from := p.sum(row)
		p.skip("AND")
		to := p.sum(row)
		return compare(left, ">=", from) && compare(left, "<=", to)
	case "IN":
		p.skip("IN", "(")
		found := false
		for {
			found = compare(left, "=", p.sum(row)) || found
			if !p.accept(",") {
				p.skip(")")
				return found
			}
		}
	}
	return left
}

func compare(a any, how string, b any) bool {
	if how == "=" || how == "<>" {
		return (a == b) == (how == "=")
	}
	x, y := a.(int64), b.(int64)
	switch how {
	case "<":
		return x < y
	case "<=":
		return x <= y
	case ">":
		return x > y
	}
	return x >= y
}

func (p *parser) sum(row tuple) any {
	value := p.value(row)
	for {
		switch {
		case p.accept("+"):
			value = value.(int64) + p.value(row).(int64)
		case p.accept("-"):
			value = value.(int64) - p.value(row).(int64)
		default:
			return value
		}
	}
}

func (p *parser) value(row tuple) any {
	word := p.next()
	switch {
	case word == "(":
		value := p.expression(row)
		p.skip(")")
		return value
	case word == "true":
		return true
	case word == "now":
		return p.now
	case word == "greatest":
		p.skip("(")
		a := p.expression(row).(int64)
		p.skip(",")
		b := p.expression(row).(int64)
		p.skip(")")
		return max(a, b)
	case word[0] == '\'':
		return word[1 : len(word)-1]
	case word[0] == '$':
		n, _ := strconv.Atoi(word[1:])
		switch arg := p.args[n-1].(type) {
		case int:
			return int64(arg)
		default:
			return arg
		}
	}
	if n, err := strconv.ParseInt(word, 10, 64); err == nil {
		return n
	}
	value, ok := row[word]
	if !ok {
		panic(fmt.Sprintf("sql: %q in %q", word, p.words))
	}
	return value
}
