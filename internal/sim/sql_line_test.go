package sim

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/internal/book"
)

// stateLocked is a row as a statement loads it.
func (t *table) stateLocked(text, name, id string, now int64) []any {
	state := []any{now, int64(1), t.rows[""]["fence"]}
	row := t.rows[name]
	for _, column := range []string{"version", "format", "fence", "sole", "since", "until", "claims"} {
		state = append(state, row[column])
	}
	if claims, ok := row["claims"].(string); ok && strings.Contains(text, "'omitted'") {
		state[len(state)-1] = two(claims, id)
	}
	return state
}

// two leaves two claims of a queue, as the statements of Postgres do.
func two(text, id string) string {
	claims := make(map[string]any)
	_ = json.Unmarshal([]byte(text), &claims)
	held, _ := claims["held"].([]any)
	waiting, _ := claims["line"].([]any)
	if n := len(waiting); n > 2 && len(held) == 1 && claims["phase"] == nil && waiting[0].(map[string]any)["weight"] == nil {
		i := slices.IndexFunc(waiting, func(c any) bool { return c.(map[string]any)["id"] == id })
		if i <= 0 {
			i = n - 1
		}
		claims["line"], claims["part"], claims["omitted"] = []any{waiting[0], waiting[i]}, true, i-1
	}
	written, _ := json.Marshal(claims)
	return string(written)
}

// A line is a row for the statements that change the JSON of its claims.
type line struct {
	tuple
	held, waiting []any
	claims        map[string]any
}

// changeLocked carries out a statement that changes the JSON of the claims.
func (t *table) changeLocked(text string, args []any, now int64) (r result) {
	does, name := (*line).join, 5
	switch {
	case strings.Contains(text, "1 to last"):
		does, name = (*line).leave, 1
	case strings.Contains(text, "'{held}', (\n"):
		does, name = (*line).extend, 3
	case strings.Contains(text, "ARRAY['line'"):
		does, name = (*line).stay, 4
	case strings.Contains(text, "{line,0,id}"):
		does, name = (*line).handOver, 3
	}
	key := args[name].(string)
	l := line{tuple: maps.Clone(t.rows[key])}
	if l.tuple == nil || json.Unmarshal([]byte(l.tuple["claims"].(string)), &l.claims) != nil {
		return r
	}
	l.held, _ = l.claims["held"].([]any)
	l.waiting, _ = l.claims["line"].([]any)
	if !does(&l, args, now) {
		return r
	}
	l.claims["held"], l.claims["line"] = l.held, l.waiting
	written, _ := json.Marshal(l.claims)
	l.tuple["claims"] = string(written)
	l.tuple["version"] = max(l.tuple["version"].(int64)+1, now)
	t.rows[key], r.changed = l.tuple, 1
	if strings.Contains(text, "RETURNING") {
		r.rows = [][]any{t.stateLocked(text, key, "", now)}
	}
	return r
}

// reach lets the row stand until then, at least.
func (l *line) reach(until int64) { l.tuple["until"] = max(l.tuple["until"].(int64), until) }

func (l *line) join(args []any, now int64) bool {
	known := strings.Contains(l.tuple["claims"].(string), args[6].(string))
	if known || l.tuple["until"].(int64) <= now || l.tuple["sole"] != "" {
		return false
	}
	claim := make(map[string]any)
	_ = json.Unmarshal([]byte(args[1].(string)), &claim)
	claim["since"] = now
	claim["until"] = now + min(args[2].(int64)*int64(1+len(l.waiting)/book.Crowd), args[3].(int64)) + args[4].(int64)
	l.waiting = append(l.waiting, claim)
	l.reach(now + args[0].(int64))
	return true
}

func (l *line) stay(args []any, now int64) (found bool) {
	for i, c := range l.waiting {
		if c.(map[string]any)["id"] == args[5] {
			claim := make(map[string]any)
			_ = json.Unmarshal([]byte(args[2].(string)), &claim)
			claim["until"], found = now+args[3].(int64), true
			l.waiting[i] = claim
		}
	}
	l.reach(now + args[0].(int64))
	return found
}

func (l *line) leave(args []any, _ int64) bool {
	at := slices.IndexFunc(l.waiting, func(c any) bool { return c.(map[string]any)["id"] == args[0] })
	if at <= 0 {
		return false
	}
	l.waiting = slices.Delete(l.waiting, at, at+1)
	return true
}

func (l *line) extend(args []any, now int64) (found bool) {
	for _, c := range l.held {
		if claim := c.(map[string]any); claim["id"] == args[4] && claim["left"] == nil && int64(claim["until"].(float64)) > now {
			claim["until"], found = now+args[2].(int64), true
		}
	}
	l.reach(now + args[0].(int64))
	return found
}

func (l *line) handOver(args []any, _ int64) bool {
	first := func(claims []any, field string) string {
		value, _ := claims[0].(map[string]any)[field].(string)
		return value
	}
	if l.tuple["fence"] != args[4] || len(l.held) != 1 || len(l.waiting) == 0 ||
		first(l.held, "id") != args[5] || first(l.waiting, "id") != args[6] || first(l.waiting, "to") != args[7] {
		return false
	}
	claim := make(map[string]any)
	_ = json.Unmarshal([]byte(args[2].(string)), &claim)
	l.held, l.waiting = []any{claim}, l.waiting[1:]
	l.tuple["fence"] = args[0]
	l.reach(args[1].(int64))
	return true
}
