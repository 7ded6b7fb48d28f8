package amplification

import (
	"slices"
	"strings"
)

// grammar makes files of one form, which grow in one production or another:
// longer names, more elements, more depth, larger numbers.
type grammar struct {
	name        string
	productions []production
	file        func(counts) string
}

// production is a way to grow. Most is where it ends: the reader knows no more,
// or the file does not become longer.
type production struct {
	name string
	most int // 0 for no end
}

// counts says how far each production has grown, by name.
type counts map[string]int

// least is what a production has in every file: two show what one does not, such
// as whether elements are compared with each other.
const least = 2

func (g grammar) least() counts {
	n := counts{}
	for _, p := range g.productions {
		n[p.name] = least
	}
	return n
}

// grown returns a file of about size bytes in which these productions have grown,
// each to its share. It is smaller if all of them end before.
func (g grammar) grown(size int, grows ...production) string {
	n := g.least()
	for i, p := range grows {
		g.grow(n, p, size*(i+1)/len(grows))
	}
	g.grow(n, grows[0], size) // if another one has ended
	return g.file(n)
}

// grow makes a production as large as a file of this size allows. Files grow nearly
// in proportion, so that a few of them show how large that is.
func (g grammar) grow(n counts, p production, size int) {
	least := n[p.name]
	most := p.most
	if most == 0 {
		most = size
	}
	length := func(count int) int {
		n[p.name] = count
		return len(g.file(n))
	}
	low, lowLength := least, length(least)
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
	n[p.name] = low
}

// sets returns each production alone, and each pair of them.
func (g grammar) sets() (all [][]production) {
	for i, p := range g.productions {
		all = append(all, []production{p})
		for _, other := range g.productions[i+1:] {
			all = append(all, []production{p, other})
		}
	}
	return all
}

func named(set []production) string {
	var names []string
	for _, p := range set {
		names = append(names, p.name)
	}
	return strings.Join(names, " and ")
}

func list(n int, element func(int) string) string   { return "[" + join(n, element) + "]" }
func members(n int, member func(int) string) string { return "{" + join(n, member) + "}" }

func join(n int, part func(int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = part(i)
	}
	return strings.Join(parts, ",")
}

func nested(depth int, before, inside, after string) string {
	return strings.Repeat(before, depth) + inside + strings.Repeat(after, depth)
}

func word(length int) string { return strings.Repeat("x", length) }

func same(text string) func(int) string { return func(int) string { return text } }

func unlimited(names ...string) (all []production) {
	for _, name := range names {
		all = append(all, production{name: name})
	}
	return all
}

func with(all []production, more ...production) []production { return slices.Concat(all, more) }
