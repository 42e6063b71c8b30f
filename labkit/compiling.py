"""From CUDA C text to a kernel handle: NVRTC, then the runtime's library calls."""
from labkit.errors import LabError, ok


def compile_source(source, name, arch):
    """Compile CUDA C for `arch` ("sm_90": machine code, "compute_75": PTX) to bytes, GPU or not.

    Raises LabError with the compiler's own text. Stands for: NVRTC, Compilation.
    """
    from cuda.bindings import nvrtc
    program = ok(nvrtc.nvrtcCreateProgram(source.encode(), f"{name}.cu".encode(), 0, [], []))
    options = [f"--gpu-architecture={arch}".encode()]
    result = nvrtc.nvrtcCompileProgram(program, len(options), options)
    if int(result[0]):
        log = b" " * ok(nvrtc.nvrtcGetProgramLogSize(program))
        ok(nvrtc.nvrtcGetProgramLog(program, log))
        raise LabError(f"The kernel {name} does not compile.", log.decode(errors="replace").strip("\0 \n"),
                       "Correct the CUDA C text; the line numbers count from its first line.")
    size, get = (nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN) if arch.startswith("sm_") else (nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)
    image = b" " * ok(size(program))
    ok(get(program, image))
    return image


def load(kernel, cudart):
    """Compile a Kernel for this GPU and load it: cudaKernel_t. Raises LabError.

    Stands for: CUDA Runtime API, Library Management.
    """
    attribute = cudart.cudaDeviceAttr
    major = ok(cudart.cudaDeviceGetAttribute(attribute.cudaDevAttrComputeCapabilityMajor, 0))
    minor = ok(cudart.cudaDeviceGetAttribute(attribute.cudaDevAttrComputeCapabilityMinor, 0))
    image = compile_source(kernel.source, kernel.name, f"sm_{major}{minor}")
    kernel._image = image                                  # the library may read it later
    library = ok(cudart.cudaLibraryLoadData(image, [], [], 0, [], [], 0))
    return ok(cudart.cudaLibraryGetKernel(library, kernel.name.encode()))
