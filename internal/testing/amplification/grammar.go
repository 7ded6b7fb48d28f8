package amplification

import (
	"slices"
	"strings"
)

// Grammar makes files of one form, which grow in one production or another:
// longer names, more elements, more depth, larger numbers.
type Grammar struct {
	Name        string
	Productions []Production
	File        func(Counts) string
}

// Production is a way to grow. Most is where it ends: the reader knows no more,
// or the file does not become longer.
type Production struct {
	Name string
	Most int // 0 for no end
}

// Counts says how far each production has grown, by name.
type Counts map[string]int

// least is what a production has in every file: two show what one does not, such
// as whether elements are compared with each other.
const least = 2

func (g Grammar) least() Counts {
	n := Counts{}
	for _, p := range g.Productions {
		n[p.Name] = least
	}
	return n
}

// grown returns a file of about size bytes in which these productions have grown,
// each to its share. It is smaller if all of them end before.
func (g Grammar) grown(size int, grows ...Production) string {
	n := g.least()
	for i, p := range grows {
		g.grow(n, p, size*(i+1)/len(grows))
	}
	if len(grows) > 1 {
		g.grow(n, grows[0], size) // if another one has ended
	}
	return g.File(n)
}

// grow makes a production as large as a file of this size allows. Files grow nearly
// in proportion, so that a few of them show how large that is.
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

// sets returns each production alone, and each pair of them.
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
