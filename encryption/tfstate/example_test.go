package tfstate_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"maps"
	"os"
	"slices"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/gocty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/tfstate"
)

// The outputs of a state, as "tofu output -json" prints them. Those that are
// sensitive stay hidden.
func Example() {
	file, err := os.ReadFile("testdata/example.tfstate") // or Opened.Data of package encryption
	if err != nil {
		log.Fatal(err)
	}
	state, err := tfstate.Parse(file)
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(state.Outputs)) {
		output := state.Outputs[name]
		if output.Sensitive {
			fmt.Println(name, "is sensitive")
			continue
		}
		value, err := output.Value()
		if err != nil {
			log.Fatal(err)
		}
		text, err := json.Marshal(ctyjson.SimpleJSONValue{Value: value})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s is %s, a %s\n", name, text, value.Type().FriendlyName())
	}
	// Output:
	// db_password is sensitive
	// subnets is [{"cidr":"10.0.1.0/24","zone":"a"},{"cidr":"10.0.2.0/24","zone":"b"}], a list of object
	// vpc_id is "vpc-0a1b2c", a string
}

// A value as plain Go values.
func ExampleOutput_Value() {
	state := example()
	value, err := state.Outputs["subnets"].Value()
	if err != nil {
		log.Fatal(err)
	}
	var subnets []struct {
		CIDR string `cty:"cidr"`
		Zone string `cty:"zone"`
	}
	if err := gocty.FromCtyValue(value, &subnets); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(subnets), subnets[0].CIDR)
	// Output: 2 10.0.1.0/24
}

// The output of zones = ["a", "b"], which is a tuple, as a slice.
func ExampleOutput_Value_tuple() {
	state, err := tfstate.Parse([]byte(`{"version":4,"outputs":{"zones":{"value":["a","b"],"type":["tuple",["string","string"]]}}}`))
	if err != nil {
		log.Fatal(err)
	}
	value, err := state.Outputs["zones"].Value()
	if err != nil {
		log.Fatal(err)
	}
	list, err := convert.Convert(value, cty.List(cty.String))
	if err != nil {
		log.Fatal(err)
	}
	var zones []string
	if err := gocty.FromCtyValue(list, &zones); err != nil {
		log.Fatal(err)
	}
	fmt.Println(zones)
	// Output: [a b]
}

// Outputs that belong together share one limit of what they may cost.
func ExampleState_Values() {
	values, err := example().Values("vpc_id", "subnets", "misspelt")
	switch {
	case errors.Is(err, tfstate.ErrCost), errors.Is(err, tfstate.ErrDigits):
		log.Fatal("someone made this file to keep us busy: ", err)
	case err != nil:
		log.Fatal(err)
	}
	_, found := values["misspelt"]
	fmt.Println(values["vpc_id"].AsString(), values["subnets"].LengthInt(), found)
	// Output: vpc-0a1b2c 2 false
}

// One instance of a resource, in a module.
func ExampleState_Resource() {
	resource, err := example().Resource(`module.db["eu"].aws_db_instance.main[0]`)
	if err != nil {
		log.Fatal(err)
	}
	attributes, sensitive, err := resource.Values()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(resource.Mode, resource.Type, resource.Provider, *resource.SchemaVersion)
	fmt.Println(attributes.GetAttr("endpoint").AsString())
	fmt.Println(attributes.GetAttr("password").IsNull(), len(sensitive.GetAttr("password").AsString()))
	// Output:
	// managed aws_db_instance registry.opentofu.org/hashicorp/aws 2
	// db.example.com:5432
	// true 7
}

// What a state has, with the size of each in the file.
func ExampleState_Resources() {
	resources, err := example().Resources()
	if err != nil {
		log.Fatal(err)
	}
	for resource := range resources {
		fmt.Println(resource.Address(), resource.Provider, resource.Size())
	}
	// Output:
	// module.db["eu"].aws_db_instance.main[0] registry.opentofu.org/hashicorp/aws 58
	// aws_vpc.main registry.opentofu.org/hashicorp/aws 20
}

// An address that the state does not have.
func ExampleState_Resource_misspelt() {
	_, err := example().Resource(`aws_vpc.mian`)
	fmt.Println(err)
	// Output: the state has no resource aws_vpc.mian. Did you mean "aws_vpc.main"?
}

func example() *tfstate.State {
	file, err := os.ReadFile("testdata/example.tfstate")
	if err != nil {
		log.Fatal(err)
	}
	state, err := tfstate.Parse(file)
	if err != nil {
		log.Fatal(err)
	}
	return state
}
