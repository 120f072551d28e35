package sim

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// A some is a request of a statement for several keys.
type some struct {
	Key, ID   string
	More, TTL int64
	Page      json.RawMessage
}

// someLocked carries out a statement that takes or frees several keys. Others hold some of the rows
// locked, so the statement leaves the rows out.
func (t *table) someLocked(text, list string, now int64) (r result) {
	var all []some
	if err := json.Unmarshal([]byte(list), &all); err != nil {
		panic("sql: " + err.Error())
	}
	slices.SortStableFunc(all, func(a, b some) int { return cmp.Compare(a.Key, b.Key) })
	all = slices.CompactFunc(all, func(a, b some) bool { return a.Key == b.Key })
	for _, one := range all {
		row, does := maps.Clone(t.rows[one.Key]), t.take
		if !strings.Contains(text, "INSERT") {
			does = t.free
		}
		if row != nil && t.locks.IntN(10) == 0 {
			continue
		}
		if answer := does(&row, one, now); answer != nil {
			t.rows[one.Key] = row
			r.changed++
			r.rows = append(r.rows, answer)
		}
	}
	return r
}

func (t *table) take(row *tuple, one some, now int64) (answer []any) {
	isNew := int64(0)
	if *row == nil {
		isNew = 1
		*row = tuple{"name": one.Key, "version": now - 1, "format": int64(1), "fence": t.rows[""]["fence"], "until": int64(0)}
	}
	r := *row
	if r["until"].(int64) > now {
		return nil
	}
	r["version"] = max(r["version"].(int64)+1, now)
	r["fence"] = max(r["fence"].(int64)+1, now) + one.More
	r["sole"], r["since"], r["until"], r["claims"] = one.ID, now, now+one.TTL, string(one.Page)
	return []any{one.ID, r["fence"], isNew}
}

func (t *table) free(row *tuple, one some, now int64) (answer []any) {
	r := *row
	if r == nil || r["sole"] != one.ID || r["until"].(int64) <= now {
		return nil
	}
	r["version"] = max(r["version"].(int64)+1, now)
	r["sole"], r["until"], r["claims"] = "", now, "{}"
	return []any{one.Key}
}
