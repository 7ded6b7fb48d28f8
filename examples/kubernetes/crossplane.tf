# A managed resource of Crossplane. Its state is rebuilt from the object and the
# secrets that it names.
data "statecrypt_resource" "project" {
  kubernetes {}

  object {
    api_version          = "mongodbatlas.jet.crossplane.io/v1alpha1"
    kind                 = "Project"
    name                 = "my-public"
    resource_type        = "mongodbatlas_project"
    provider_source      = "mongodb/mongodbatlas"
    identifier_attribute = "name"
  }

  method = "unencrypted"
}

output "project_id" { value = data.statecrypt_resource.project.attributes.id }
