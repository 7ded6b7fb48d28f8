package amplification

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Objects of Crossplane and Kubeform, and the secrets that they name.

const (
	crossplaneObject = `[{"api_version":"ec2.aws.upbound.io/v1beta1","kind":"VPC","name":"main","namespace":"x","resource_type":"aws_vpc",` +
		`"single_blocks":["one"],"sensitive_fields":%s}]`
	kubeformObject = `[{"api_version":"linode.kubeform.com/v1alpha1","kind":"Instance","name":"vm","namespace":"x"}]`
	moduleObject   = `[{"api_version":"modules.kubeform.com/v1alpha1","kind":"RDS","name":"db","namespace":"x"}]`
)

func crossplane(forProvider, initProvider, atProvider, secret string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"ec2.aws.upbound.io/v1beta1","kind":"VPC",`+
		`"metadata":{"name":"main","namespace":"x","uid":"u","annotations":{"crossplane.io/external-name":"vpc-1"}},`+
		`"spec":{"forProvider":%s,"initProvider":%s,"writeConnectionSecretToRef":{"name":"s"}},"status":{"atProvider":%s}},%s]}`,
		forProvider, initProvider, atProvider, secret)
}

func kubeform(output, secret string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"linode.kubeform.com/v1alpha1","kind":"Instance",`+
		`"metadata":{"name":"vm","namespace":"x"},"spec":{"secretRef":{"name":"s"}},"status":{"output":%s,`+
		`"state":{"version":4,"terraform_version":"0.13.5","serial":3,"lineage":"l"}}},%s]}`, output, secret)
}

func secretOf(stringData string) string {
	return `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"x"},"stringData":` + stringData + "}"
}

// places are the keys of a secret that say where their values belong.
func places(prefix string, n Counts) string {
	return secretOf(members(n["keys"], func(i int) string {
		return fmt.Sprintf(`"%s.a%d%s%s":"v"`, prefix, i, word(n["length of names"]), strings.Repeat(fmt.Sprintf(".%d", n["index"]), n["depth"]))
	}))
}

func ofPlaces() []Production {
	return with(unlimited("keys", "length of names"), Production{"depth", 90}, Production{"index", 1023})
}

func crossplanes() []Grammar {
	const selector = `{"name":"s","key":"k"}`
	nesting := Production{"depth", 400}
	selecting := func(n Counts) (fields, secret string) {
		fields = members(n["selectors"], func(i int) string { return fmt.Sprintf(`"a%dSecretRef":%s`, i, selector) })
		fields = nested(n["depth"], `{"b`+word(n["length of names"])+`":[`, fields, "]}")
		return fields, secretOf(`{"k":"` + word(n["length of values"]) + `"}`)
	}
	fields := func(n Counts) string {
		return nested(n["depth"], `{"b`+word(n["length of names"])+`":[`, attributes(n["fields"], n["length of names"], "1"), "]}")
	}
	return []Grammar{
		{"selectors", with(unlimited("selectors", "length of names", "length of values"), nesting), func(n Counts) string {
			fields, secret := selecting(n)
			return crossplane(fields, "{}", "{}", secret)
		}},
		{"lists of selectors", unlimited("selectors", "length of values"), func(n Counts) string {
			return crossplane(`{"aSecretRef":`+list(n["selectors"], same(selector))+"}", "{}", "{}",
				secretOf(`{"k":"`+word(n["length of values"])+`"}`))
		}},
		{"whole secrets", unlimited("selectors", "keys", "length of values"), func(n Counts) string {
			return crossplane(members(n["selectors"], func(i int) string { return fmt.Sprintf(`"a%dSecretRef":{"name":"s"}`, i) }), "{}", "{}",
				secretOf(attributes(n["keys"], 1, `"`+word(n["length of values"])+`"`)))
		}},
		{"places", ofPlaces(), func(n Counts) string { return crossplane("{}", "{}", "{}", places("attribute", n)) }},
		{"fields", with(unlimited("fields", "length of names"), nesting), func(n Counts) string {
			return crossplane(fields(n), fields(n), fields(n), secretOf("{}"))
		}},
		{"objects", unlimited("objects", "length of names"), func(n Counts) string {
			return crossplane("{}", "{}", "{}", secretOf("{}")+strings.Repeat(`,{"kind":"`+word(n["length of names"])+`"}`, n["objects"]))
		}},
	}
}

// ofTheCluster have no namespace and may name any: one secret without one is in all
// of them.
func ofTheCluster() Grammar {
	return Grammar{"namespaces", unlimited("selectors", "keys", "length of values"), func(n Counts) string {
		fields := members(n["selectors"], func(i int) string {
			return fmt.Sprintf(`"a%dSecretRef":{"name":"s","namespace":"n%d","key":"k"}`, i, i)
		})
		secret := secretOf(attributes(n["keys"], 1, `"`+word(n["length of values"])+`"`))
		return strings.NewReplacer(`,"namespace":"x"`, "", `,"writeConnectionSecretToRef":{"name":"s"}`, "").Replace(
			crossplane(fields, "{}", "null", secret))
	}}
}

func kubeforms() []Grammar {
	return []Grammar{
		{"places", ofPlaces(), func(n Counts) string { return kubeform("{}", places("out", n)) }},
		{"fields", with(unlimited("fields", "length of names"), Production{"depth", 400}), func(n Counts) string {
			return kubeform(nested(n["depth"], `{"b":[`, attributes(n["fields"], n["length of names"], "1"), "]}"), secretOf("{}"))
		}},
		{"lists in lists", []Production{{"depth", 4000}}, func(n Counts) string {
			return nested(n["depth"], `{"apiVersion":"v1","kind":"List","items":[`, kubeform("{}", secretOf("{}")), "]}")
		}},
		{"maps", unlimited("keys", "members"), func(n Counts) string {
			text, _ := json.Marshal(attributes(n["members"], 1, `"v"`))
			return kubeform("{}", secretOf(members(n["keys"], func(i int) string { return fmt.Sprintf(`"out.a%d":%s`, i, text) })))
		}},
	}
}

func moduleManifest(state string) string {
	text, _ := json.Marshal(state)
	return fmt.Sprintf(`{"apiVersion":"modules.kubeform.com/v1alpha1","kind":"RDS","metadata":{"name":"db","namespace":"x"},`+
		`"status":{"state":%s}}`, text)
}

// yamls are documents of what a YAML parser charges most for, with head before
// it.
func yamls(head string) []Grammar {
	flow := func(name, part string) Grammar {
		return Grammar{name, unlimited("parts", "length of texts"), func(n Counts) string {
			return head + "b: " + word(n["length of texts"]) + "\na: [" + strings.Repeat(part, n["parts"]) + "]\n"
		}}
	}
	nesting := func(name, before, after string) Grammar {
		return Grammar{name, []Production{{"depth", 9000}}, func(n Counts) string {
			return head + "a: " + nested(n["depth"], before, "", after) + "\n"
		}}
	}
	block := func(name, part string) Grammar {
		return Grammar{name, unlimited("parts", "length of texts"), func(n Counts) string {
			return head + "b: " + word(n["length of texts"]) + "\na:\n" + strings.Repeat(part, n["parts"])
		}}
	}
	return []Grammar{
		flow("flow pairs", "a:,"), flow("flow elements", "a,"), flow("flow maps", "{},"), flow("flow keys", "? a,"), flow("tags", "!!str a,"),
		flow("anchors", "&a a,"), flow("comments", "a,#\n"), flow("quotes", `"",`), flow("nulls", "~,"),
		nesting("deep lists", "[", "]"), nesting("deep maps", "{a: ", "}"), nesting("deep dashes", "\n- - ", ""),
		block("entries", " - a\n"), block("empty entries", " -\n"), block("comment lines", " #\n"),
		flow("escapes", `"\u0041",`),
		// kubectl would take lines that end otherwise for a document.
		{"handles of tags", unlimited("handles", "uses", "length of prefixes"), func(n Counts) string {
			var b strings.Builder
			for i := range n["handles"] {
				fmt.Fprintf(&b, "%%TAG !h%d! tag:%s\r", i, word(n["length of prefixes"]))
			}
			return b.String() + "---\n" + head + "a: [" + strings.Repeat("!h1!a a,", n["uses"]) + "]\n"
		}},
		{"members", unlimited("members", "length of names"), func(n Counts) string {
			var b strings.Builder
			for i := range n["members"] {
				fmt.Fprintf(&b, "k%d%s: 1\n", i, word(n["length of names"]))
			}
			return head + b.String()
		}},
	}
}

func documents() Grammar {
	return Grammar{"documents", unlimited("documents", "length of texts"), func(n Counts) string {
		return strings.Repeat("---\na: "+word(n["length of texts"])+"\n", n["documents"])
	}}
}
