// Package asks makes the later calls of claims that tests have asked for.
package asks

import "github.com/holdfast-go/holdfast/driver"

// Renewals returns a plain renewal of each claim.
func Renewals(claims ...driver.Ask) (rs []driver.Renewal) {
	for _, a := range claims {
		rs = append(rs, driver.Renewal{Claim: a.Claim})
	}
	return rs
}

// Releases returns a release of each claim, without Late.
func Releases(claims ...driver.Ask) (rs []driver.Release) {
	for _, a := range claims {
		rs = append(rs, driver.Release{Claim: a.Claim})
	}
	return rs
}
