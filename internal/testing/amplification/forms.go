package amplification

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// form is one way to make a response grow.
type form struct {
	Grammar
	answer func(file string) *answer
}

// forms returns the ways to make a response grow in its own format, and error responses to send instead.
func (a answer) forms() []form {
	refusal := answer{status: http.StatusForbidden, header: http.Header{"Content-Type": {"application/json"}},
		body: []byte(`{"code":"no","message":"m","error":{"code":403,"message":"m","errors":[{"message":"m"}]},"errors":["m"]}`)}
	inXML := answer{status: http.StatusForbidden, header: http.Header{"Content-Type": {"application/xml"}},
		body: []byte(`<?xml version="1.0"?><Error><Code>No</Code><Message>m</Message></Error>`)}
	return slices.Concat(a.own(), refusal.own(), inXML.own())
}

func (a answer) own() (all []form) {
	grammars := []Grammar{longer(string(a.body))}
	switch text := strings.TrimSpace(string(a.body)); {
	case strings.HasPrefix(text, "{"):
		grammars = append(grammars, InJSON(text)...)
	case strings.HasPrefix(text, "<"):
		grammars = append(grammars, InXML(text)...)
	}
	for _, g := range grammars {
		all = append(all, form{g, func(file string) *answer { return &answer{a.status, a.header, []byte(file)} }})
	}
	return append(all, a.headers())
}

// headers returns a form with ever larger response headers. Each line of the generated file is one header.
func (a answer) headers() form {
	g := Grammar{"headers", with(unlimited("length of names", "length of values"), Production{"headers", 4000}), func(n Counts) string {
		var b strings.Builder
		for i := range n["headers"] {
			fmt.Fprintf(&b, "X-%s%d: %s\n", word(n["length of names"]), i, word(n["length of values"]))
		}
		return b.String()
	}}
	return form{g, func(file string) *answer {
		header := a.header.Clone()
		for line := range strings.Lines(file) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			header[name] = []string{value}
		}
		return &answer{a.status, header, a.body}
	}}
}

// longer returns a grammar that adds bytes to a text of any format.
func longer(text string) Grammar {
	return Grammar{"bytes", unlimited("length"), func(n Counts) string { return text + word(n["length"]) }}
}

// InJSON returns grammars that make JSON content grow. They repeat what is there, and add unknown members to the first
// object or to all objects.
func InJSON(text string) []Grammar {
	var value any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if d.Decode(&value) != nil {
		return nil
	}
	strange := with(unlimited("members", "length of names", "length of texts", "escapes", "digits"), Production{"depth", 9000})
	return []Grammar{
		{"JSON", unlimited("elements", "length of texts"), func(n Counts) string {
			return write(value, n["elements"], n["length of texts"], "", "")
		}},
		{"strange members", strange, func(n Counts) string { return write(value, 1, 0, strangers(n), "") }},
		{"strange members in each object", unlimited("members", "depth"), func(n Counts) string {
			return write(value, 1, 0, strangers(n), strangers(n))
		}},
	}
}

func strangers(n Counts) string {
	return join(n["members"], func(i int) string {
		return fmt.Sprintf(`"x%d%s":"%s"`, i, word(n["length of names"]), word(n["length of texts"]))
	}) + `,"y":"` + strings.Repeat(`\u0041`, n["escapes"]) + `","n":1` + strings.Repeat("0", n["digits"]) +
		`,"z":` + nested(n["depth"], `[{"a":`, "1", "}]")
}

// write encodes a JSON value. It repeats the elements of each list, lengthens each string, and adds members to the top
// object (here) and to all objects inside it (below).
func write(value any, elements, longer int, here, below string) string {
	switch v := value.(type) {
	case map[string]any:
		var all []string
		for name, member := range v {
			key, _ := json.Marshal(name)
			all = append(all, string(key)+":"+write(member, elements, longer, below, below))
		}
		slices.Sort(all)
		if here != "" {
			all = append(all, here)
		}
		return "{" + strings.Join(all, ",") + "}"
	case []any:
		var all []string
		for _, element := range v {
			all = append(all, write(element, elements, longer, below, below))
		}
		if len(all) == 0 {
			return "[]"
		}
		return list(elements, same(strings.Join(all, ",")))
	case string:
		value = v + word(longer)
	}
	text, _ := json.Marshal(value)
	return string(text)
}

// InXML returns grammars that make XML content grow. They repeat the content of the first element, or add unknown
// elements to it.
func InXML(text string) []Grammar {
	end := strings.LastIndex(text, "</")
	name, _, _ := strings.Cut(strings.TrimPrefix(text[max(end, 0):], "</"), ">")
	begin := strings.Index(text, "<"+name)
	if end < 0 || begin < 0 {
		return nil
	}
	begin += strings.Index(text[begin:], ">") + 1
	inside := text[begin:end]
	around := func(content string) string { return text[:begin] + content + text[end:] }
	strange := with(unlimited("elements", "attributes", "length of names", "length of texts", "escapes", "comments"),
		Production{"depth", 9000})
	return []Grammar{
		{"XML", unlimited("content"), func(n Counts) string { return around(strings.Repeat(inside, n["content"])) }},
		{"strange elements", strange, func(n Counts) string {
			name := word(n["length of names"])
			var attributes strings.Builder
			for i := range n["attributes"] {
				fmt.Fprintf(&attributes, ` a%d="1"`, i)
			}
			one := "<" + name + ">" + word(n["length of texts"]) + "</" + name + ">"
			return around(inside + strings.Repeat(one, n["elements"]) + "<y" + attributes.String() + "/>" +
				"<e>" + strings.Repeat("&#65;", n["escapes"]) + "</e>" + strings.Repeat("<!---->", n["comments"]) +
				nested(n["depth"], "<d>", "", "</d>"))
		}},
	}
}
