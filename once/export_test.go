package once

// Size returns how many records m keeps.
func Size(m *Memory) int { return len(m.records) }
