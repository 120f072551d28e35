package drivertest

import (
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/driver"
)

// oddKeys are endings of keys that a store may be tempted to change: a file system, a
// database collation, a pattern, a URL or a line of text would take the ending for
// something else. No two endings make the same key.
var oddKeys = []string{
	// Parts of a path, which a file system or a server may resolve.
	"", "/", "//", "/.", "/..", "/../..", "/../x", "./x", ".", "..", "x/",
	// Case, and bytes at the end, which a collation or a server may ignore.
	"job", "Job", "JOB", "job ", " job", "job  ", "job.", "job\x00", "job\x00\x00", "\x00job",
	// Bytes that part words or lines of a protocol, and what stands for them.
	"job\n", "job\r\n", "\njob", "job\t", "a b", "a+b", "a%20b", "a%2Fb", "a/b", `a\b`, "a:b", "a|b",
	// Letters that are equal in some language, and marks that nobody sees.
	"é", "e\u0301", "ß", "ss", "İ", "i", "I", "ı", "\u200b", "\u00a0", "\ufeff", "漢字", "🔒", "👩‍🚒", "\u2028",
	// Patterns, quotes, and what a shell or SQL would run.
	"*", "?", "[a]", "{a}", "%", "_", "'", `"`, "`", "; DROP TABLE locks; --", "${HOME}", "$(id)", "#", "~", "-rf", "--",
	// Control bytes, devices of Windows, own names of stores, and numbers.
	"\x01", "\x7f", "\u0085", "con", "nul", "aux.txt", "COM1", ".lock", ".tmp", "null", "nil", "0", "00", "-1",
}

// keyRules are about the keys themselves, which are plain bytes to the contract and seldom
// to a server.
var keyRules = []rule{
	// Users build keys from paths, addresses and names. Collations fold case, file systems
	// read "..", patterns read "*", and servers trim spaces: each of them would join two
	// locks.
	{
		name:  "key/odd",
		words: "Every UTF-8 text of 1 to 512 bytes is a key, and keys that differ in one byte are different keys.",
		check: func(e *env, a, b *client) { e.distinct(a, b, oddKeys) },
	},
	// Columns, file names and cache items have limits below 512 bytes. A store that cuts the
	// key joins locks; a store that hashes must hash the whole key.
	{
		name:  "key/long",
		words: "Keys of 512 bytes work like short keys, and may differ in the last byte only.",
		check: func(e *env, a, b *client) {
			// A limit may count bytes, characters, or the bytes of an escaped text.
			ascii := strings.Repeat("k", driver.MaxKey-len(e.key)-1)
			wide := strings.Repeat("é", (driver.MaxKey-len(e.key)-1)/2-1)
			wide += strings.Repeat("x", driver.MaxKey-len(e.key)-1-len(wide))
			// An escape may take three bytes for one.
			slashes := strings.Repeat("/", driver.MaxKey-len(e.key)-1)
			nuls := strings.Repeat("\x00", driver.MaxKey-len(e.key)-1)
			var endings []string
			for _, head := range []string{ascii, wide, slashes, nuls} {
				endings = append(endings, head, head+"a", head+"b", head+"A", head+" ")
			}
			e.distinct(a, b, endings)
		},
	},
	// The other rules use keys below a common prefix, which hides that a bare "." or "/" has
	// a meaning for a file system or a server.
	{
		name:  "key/whole",
		words: "Short odd keys work without a prefix.",
		check: func(e *env, a, b *client) {
			var claims []driver.Ask
			for _, key := range []string{".", "..", "/", " ", "\x00", "\n", "*", "%", "-", "~", "nul", "🔒"} {
				claim := on(key, lasting(e.exclusive("holder"), max(patience, e.harness.MinTTL)))
				a.eventually(claim, claim.TTL) // Another run may use the key.
				claims = append(claims, claim)
			}
			for _, claim := range claims {
				b.refused(on(claim.Key, e.exclusive("other")))
				a.ended(claim)
			}
		},
	},
}

// distinct checks that keys with the given endings are held side by side.
func (e *env) distinct(a, b *client, endings []string) {
	var claims []driver.Ask
	for _, ending := range endings {
		claim := on(e.key+ending, e.exclusive("holder"))
		if grant := a.acquire(claim); !grant.OK {
			e.failf("key %s was refused%s, while other keys are held", cut(claim.Key), because(grant))
		}
		claims = append(claims, claim)
	}
	for _, claim := range claims {
		if b.acquire(on(claim.Key, e.exclusive("other"))).OK {
			e.failf("key %s was granted though it is held", cut(claim.Key))
		}
	}
	if e.has(Inspect) {
		var want []string
		for _, claim := range claims {
			want = append(want, claim.Key)
		}
		slices.Sort(want)
		if got := b.keys(e.key); !slices.Equal(got, want) {
			e.failf("Keys yields %q, want %q", strip(got, e.key), strip(want, e.key))
		}
	}
	for i, err := range a.release(claims...) {
		if err != nil {
			e.failf("Release of key %s returned %v", cut(claims[i].Key), told(err))
		}
		b.granted(on(claims[i].Key, e.exclusive("next")))
	}
}
