"""Graph Management: user objects, which graphs can hold."""
from .. import convert, user_object as objects, values
from ._names import Arg, Graph, HostFunction, Pointer, c_uint, name

UserObject = Arg(convert.handle(values.cudaUserObject_t), objects.object_of)


@name(gives=1)
def cudaUserObjectCreate(ptr: Pointer, destroy: HostFunction, initialRefcount: c_uint, flags: c_uint):
    return values.cudaUserObject_t(objects.create(ptr, destroy, initialRefcount, flags).handle)


@name()
def cudaUserObjectRetain(object: UserObject, count: c_uint):
    objects.retain(object, count)


@name()
def cudaUserObjectRelease(object: UserObject, count: c_uint):
    objects.release(object, count)


@name()
def cudaGraphRetainUserObject(graph: Graph, object: UserObject, count: c_uint, flags: c_uint):
    objects.retain_for(graph, object, count, flags)


@name()
def cudaGraphReleaseUserObject(graph: Graph, object: UserObject, count: c_uint):
    objects.release_from(graph, object, count)
