package amplification

import (
	"slices"
	"strings"
)

// Grammar generates files of one form. The files grow in one or more productions: longer names, more elements, greater
// depth, larger numbers.
type Grammar struct {
	Name        string
	Productions []Production
	File        func(Counts) string
}

// Production is one way to grow. It stops at Most, because the reader accepts no more, or because the file does not get
// any longer.
type Production struct {
	Name string
	Most int // 0 means no limit
}

// Counts holds the current size of each production, by name.
type Counts map[string]int

// least is the count of each production in every file. It is two, because one is not always enough: for example, only
// two elements can be compared with each other.
const least = 2

func (g Grammar) least() Counts {
	n := Counts{}
	for _, p := range g.Productions {
		n[p.Name] = least
	}
	return n
}

// grown returns a file of about size bytes in which the given productions have grown, each to its share. The file is
// smaller if all productions reach their limits.
func (g Grammar) grown(size int, grows ...Production) string {
	n := g.least()
	for i, p := range grows {
		g.grow(n, p, size*(i+1)/len(grows))
	}
	if len(grows) > 1 {
		g.grow(n, grows[0], size) // in case another production has reached its limit
	}
	return g.File(n)
}

// grow makes a production as large as a file of the given size allows. The file size is nearly proportional to the
// count, so a few trial files are enough to find the count.
func (g Grammar) grow(n Counts, p Production, size int) {
	most := p.Most
	if most == 0 {
		most = size
	}
	length := func(count int) int {
		n[p.Name] = count
		return len(g.File(n))
	}
	low := n[p.Name]
	lowLength := length(low)
	for low < most && lowLength < size {
		next := min(most, 2*low)
		nextLength := length(next)
		if nextLength > size {
			next = low + (next-low)*(size-lowLength)/(nextLength-lowLength)
			if length(next) <= size {
				low = next
			}
			break
		}
		low, lowLength = next, nextLength
	}
	n[p.Name] = low
}

// sets returns each single production, and each pair of productions.
func (g Grammar) sets() (all [][]Production) {
	for i, p := range g.Productions {
		all = append(all, []Production{p})
		for _, other := range g.Productions[i+1:] {
			all = append(all, []Production{p, other})
		}
	}
	return all
}

func named(set []Production) string {
	var names []string
	for _, p := range set {
		names = append(names, p.Name)
	}
	return strings.Join(names, " and ")
}

func list(n int, element func(int) string) string   { return "[" + join(n, element) + "]" }
func members(n int, member func(int) string) string { return "{" + join(n, member) + "}" }

func join(n int, part func(int) string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(part(i))
	}
	return b.String()
}

func nested(depth int, before, inside, after string) string {
	return strings.Repeat(before, depth) + inside + strings.Repeat(after, depth)
}

func word(length int) string { return strings.Repeat("x", length) }

func same(text string) func(int) string { return func(int) string { return text } }

func unlimited(names ...string) (all []Production) {
	for _, name := range names {
		all = append(all, Production{Name: name})
	}
	return all
}

func with(all []Production, more ...Production) []Production { return slices.Concat(all, more) }
